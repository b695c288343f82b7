package import Libevent

/// The state of a server of an origin at one moment, put together from its places (`ServerGroup.states`) and from their
/// connections on each loop (`UpstreamPool.connections`).
package struct ServerState: Sendable, Equatable {
    /// Whether a place of the server gets requests without being asked whether it is back.
    package var isUp: Bool
    /// When that last changed for one of its places, in nanoseconds of the monotonic clock; `nil`: never.
    package var changedAt: Int64?
    /// When the next place that is away may be probed, on the same clock.
    package var nextTry: Int64?
    /// Connections that carry a request or a tunnel, or belong to a client connection.
    package var inUse: Int
    /// Connections kept for the next request.
    package var idle: Int
    /// The addresses to which the server's name resolved; empty if it has no name, or if no request has looked it up
    /// yet.
    package var addresses: [AddressState]

    /// - Parameters:
    ///   - places: of one server.
    ///   - connections: of all loops and all servers.
    package init(_ places: [PlaceState], isNamed: Bool, _ connections: [UpstreamPool.ConnectionCount]) {
        let ups = places.filter { $0.condition == .up || $0.condition == .slowStart }
        isUp = !ups.isEmpty
        changedAt = places.compactMap(\.changedAt).max()
        nextTry = places.compactMap(\.nextProbe).min()
        let own = connections.filter { count in places.contains { $0.place === count.place } }
        inUse = own.reduce(0) { $0 + $1.inUse }
        idle = own.reduce(0) { $0 + $1.idle }
        addresses = []
        guard isNamed else { return }
        for place in places {
            let state = ServerState([place], isNamed: false, own)
            addresses += place.place.addresses.map { AddressState(address: $0, state: state) }
        }
    }
}

/// The state of one address of a server at one moment.
package struct AddressState: Sendable, Equatable {
    /// The address with its port.
    package let address: SocketAddress
    /// A state like that of a server, without addresses.
    package var state: ServerState
}
