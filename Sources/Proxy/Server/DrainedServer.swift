import Libevent
import Routing
import Upstream

/// An operator's request that a server, or one address of its name, gets no new requests, or gets requests again.
package struct DrainRequest: Sendable {
    /// The name of the upstream.
    package let upstream: String
    /// The server as in the configuration, or one address of a name as in `/status`.
    package let server: String
    /// Whether it gets no new requests.
    package let isDrained: Bool

    package init(upstream: String, server: String, isDrained: Bool) {
        self.upstream = upstream
        self.server = server
        self.isDrained = isDrained
    }
}

/// The answer to a `DrainRequest`, in a sentence.
package enum DrainAnswer: Sendable {
    case done(String)
    /// The configuration has no such upstream or server; with the names that it has.
    case unknown(String)
}

/// The origin that a `DrainRequest` names, and the server or address of it.
struct DrainedServer {
    /// The most names in an answer about an unknown one.
    private static let mostNames = 50

    let origin: Origin
    let target: DrainTarget
    /// `upstream app: server http://127.0.0.1:9000`.
    let name: String

    /// - Throws: a sentence for the operator.
    init(named request: DrainRequest, in origins: [Origin], at now: Int64) throws(DrainedServer.Unknown) {
        guard let origin = origins.first(where: { $0.settings.name == request.upstream }) else {
            throw Unknown("there is no such upstream; there are: ", origins.map(\.settings.name))
        }
        let servers = origin.settings.servers
        let addresses = origin.group.states(at: now).flatMap(\.place.addresses)
        self.origin = origin
        if let server = servers.first(where: { $0.isNamed(request.server) }) {
            target = .server(server.location)
            name = "upstream \(request.upstream): server \(server)"
        } else if let address = addresses.first(where: { "\($0)" == request.server }) {
            target = .address(address)
            name = "upstream \(request.upstream): address \(address)"
        } else {
            throw Unknown(
                "upstream \(request.upstream) has no such server; it has: ",
                servers.map(\.description) + addresses.map(\.description))
        }
    }

    struct Unknown: Error {
        let text: String

        init(_ text: String, _ names: [String]) {
            let more = names.count > DrainedServer.mostNames ? " and \(names.count - DrainedServer.mostNames) more" : ""
            self.text = text + names.prefix(DrainedServer.mostNames).joined(separator: ", ") + more
        }
    }

    /// The outcome for the operator: a clause that follows `name`.
    /// - Parameter inFlight: the connections to them that are in use.
    func outcome(isDrained: Bool, inFlight: Int, at now: Int64) -> String {
        let states = origin.group.states(at: now)
        guard isDrained else {
            let away = states.first { target.includes($0.place) && !$0.condition.isInUse }
            return away.map {
                "is not drained any more, but \($0.condition.rawValue)\($0.cause.map { " (\($0))" } ?? "")"
            }
                ?? "gets requests again"
        }
        let isLast = !states.contains { $0.condition.isInUse }
        return "is drained: \(inFlight) request\(inFlight == 1 ? " is" : "s are") in flight there"
            + (isLast ? "; no other server of the upstream is in use, so its requests get 503 or a stale response" : "")
    }
}

extension UpstreamServer {
    /// Whether `text` names the server as a configuration file may: also without the port of its scheme, or with a slash at its end.
    fileprivate func isNamed(_ text: String) -> Bool {
        let shown = description
        guard case .tcp = location, text != shown else { return text == shown }
        let plain = (text.hasSuffix("/") ? String(text.dropLast()) : text).lowercased()
        return plain == shown || "\(plain):\(defaultPort)" == shown
    }
}
