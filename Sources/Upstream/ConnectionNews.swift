/// An event of a connection to an origin. Operators see from these events how the origin treats connections.
package enum ConnectionNews: Sendable {
    /// The connection was established after this many nanoseconds.
    case opened(after: UInt64)
    /// The connection was closed after this many exchanges.
    case closed(ConnectionEnd, exchanges: Int)
}

/// Why a connection to an origin was closed.
package enum ConnectionEnd: Sendable, CustomStringConvertible {
    /// Between two exchanges, the server closed the connection, or sent bytes that no request had asked for.
    case byServer
    /// No request used the connection for the upstream's `idle-timeout`.
    case idleTimeout
    /// One side wanted no further exchange on the connection, or its bytes could not be trusted for one.
    case notReusable
    /// The pool has as many idle connections as it may keep, or the connection's settings or server address are no
    /// longer in use.
    case surplus
    /// The connection's settings were replaced, its server's name has other addresses now, or the program ends.
    case outOfUse
    /// The connection belonged to a client connection that ended. Or it may be authenticated for one client, but
    /// belongs to no client connection, so that no other request can use it.
    case clientEnded
    /// The exchange ended before its response did: no client wanted the rest.
    case abandoned
    /// The exchange failed.
    case failed(UpstreamError)
    /// The tunnel that the connection carried has ended.
    case tunnelEnded

    package var description: String {
        switch self {
        case .byServer: "the server closed it while idle, or sent what was not asked for"
        case .idleTimeout: "idle for idle-timeout"
        case .notReusable: "not reusable after its last response"
        case .surplus: "not kept: max-idle-connections is reached, or its settings or its server's addresses changed"
        case .outOfUse: "no longer used: its settings or its server's addresses changed, or the program ends"
        case .clientEnded: "it belonged to one client's connection (NTLM or Negotiate)"
        case .abandoned: "nobody wanted the rest of the response"
        case .failed(let error): "\(error)"
        case .tunnelEnded: "its tunnel ended"
        }
    }
}
