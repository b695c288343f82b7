import Bytes
import HTTPSemantics

/// The routes that requests of one scheme may match, in the order of the configuration. Immutable; a class, so that a
/// request copies none of it.
final class RouteList: Sendable {
    private let routes: [Route]
    /// Finds a route; `nil` if there are few, which are searched from first to last.
    private let table: RouteTable?

    init(_ routes: [Route]) {
        self.routes = routes
        table = routes.count > RouteTable.mostWalked ? RouteTable(routes.map { ($0.host, $0.path) }) : nil
    }

    /// The first route that a request matches; `nil`: none.
    func first(_ head: RequestHead, _ fields: FieldView) -> Route? {
        guard let first = routes.first else { return nil }
        if first.takesAll { return first }
        let host = fields.bytes.extracting(head.authority.range).hostPart
        let path = fields.bytes.extracting(head.target.path.range)
        if let table { return table.first(host: host, path: path).map { routes[$0] } }
        for route in routes where route.matches(host: host, path: path) { return route }
        return nil
    }
}
