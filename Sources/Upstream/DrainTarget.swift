package import Libevent

/// A server that an operator lets have no new requests, or one address, at each server that has it.
package enum DrainTarget: Sendable, Hashable {
    case server(UpstreamServer.Location)
    /// An address of a server's name.
    case address(SocketAddress)

    /// Whether requests to the place are concerned.
    package func includes(_ place: Place) -> Bool { includes(place.server, place.addresses) }

    func includes(_ server: UpstreamServer, _ addresses: [SocketAddress]) -> Bool {
        switch self {
        case .server(let location): server.location == location
        case .address(let address): addresses.contains(address)
        }
    }
}
