import Libevent

/// What an operator has drained at an origin: servers, and addresses of servers. A value, behind the lock of the list of
/// its `ServerGroup`.
///
/// An address is noted for each server of the settings, also for one whose name does not have it now: the name may have
/// it later, and one server may get it back while another does not.
struct Drains: Sendable {
    private struct Drain: Hashable {
        let server: UpstreamServer.Location
        /// `nil`: all addresses.
        let address: SocketAddress?
    }

    private var all: Set<Drain> = []

    /// Whether the place of a server with these addresses is drained.
    func include(_ server: UpstreamServer, _ addresses: [SocketAddress]) -> Bool {
        all.contains { $0.server == server.location && ($0.address.map(addresses.contains) ?? true) }
    }

    mutating func add(_ target: DrainTarget, of servers: [UpstreamServer]) {
        switch target {
        case .server(let server): all.insert(Drain(server: server, address: nil))
        case .address(let address):
            for server in servers { all.insert(Drain(server: server.location, address: address)) }
        }
    }

    /// Puts a server back with all its addresses, also those that its name does not have now; or one address, at each
    /// server: a drained server stays so at the other addresses that its name has now.
    mutating func remove(_ target: DrainTarget, of places: [Place]) {
        switch target {
        case .server(let server):
            all = all.filter { $0.server != server }
        case .address(let address):
            for place in places where target.includes(place) {
                let server = place.server.location
                if all.remove(Drain(server: server, address: nil)) != nil {
                    let others = places.filter { $0.server.location == server }.flatMap(\.addresses)
                    for other in others { all.insert(Drain(server: server, address: other)) }
                }
                // The two loopback addresses are one place.
                for own in place.addresses { all.remove(Drain(server: server, address: own)) }
            }
            all = all.filter { $0.address != address }
        }
    }

    /// What is drained of these servers.
    func kept(for servers: [UpstreamServer]) -> Drains {
        let locations = Set(servers.map(\.location))
        var kept = self
        kept.all = all.filter { locations.contains($0.server) }
        return kept
    }
}
