import Bytes
import HTTPSemantics

/// The routes that requests of one scheme may match, in the order of the configuration. Immutable; a class, so that a
/// request copies none of it.
final class RouteList: Sendable {
    private let routes: [Route]
    /// Finds a route; `nil` if there are few, which are searched from first to last.
    private let table: RouteTable?

    /// Finds a route by a path as an origin reads it; `nil` if no access rules depend on it.
    private let readings: RouteTable?

    /// - Parameter comparesSpellings: as in `RouteRules`.
    init(_ routes: [Route], comparesSpellings: Bool) {
        self.routes = routes
        readings =
            comparesSpellings
            ? RouteTable(
                routes.map { route in
                    let (path, slash) = (route.path, ByteSlice("/"))
                    let normal = PathSpelling.normal(path.span)
                    return (route.host, normal == slash ? .empty : normal)
                }) : nil
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

    /// The routes that a request matches by the paths that origins may read in its own.
    func routes(ofReadings readings: [ByteSlice], host: Span<UInt8>) -> [Route] {
        guard let table = self.readings else { return [] }
        return readings.compactMap { path in table.first(host: host, path: path.span).map { routes[$0] } }
    }
}
