/// What becomes of the connections to an origin, for whoever looks into how it treats them.
public enum ConnectionNews: Sendable {
    /// The connection is established, after this many nanoseconds.
    case opened(after: UInt64)
    /// The connection was closed after this many exchanges.
    case closed(ConnectionEnd, exchanges: Int)
}

/// Why a connection to an origin was closed.
public enum ConnectionEnd: Sendable, CustomStringConvertible {
    /// Between two exchanges: the server closed it, or sent what nobody had asked for.
    case byServer
    /// Nobody used it for as long as the upstream keeps one.
    case idleTimeout
    /// One side or the other wanted no other exchange on it, or its bytes could not be trusted for one.
    case notReusable
    /// There are as many idle ones as may be kept, or nobody uses its server any more.
    case surplus
    /// The connection's settings were replaced, its server's name has other addresses now, or the program ends.
    case outOfUse
    /// It was one client connection's own, which ended; or it may have been, and nobody else can use it.
    case clientEnded
    /// The exchange ended before its response did: nobody wanted the rest.
    case abandoned
    /// The exchange failed.
    case failed(UpstreamError)
    /// The tunnel that the connection carried has ended.
    case tunnelEnded

    public var description: String {
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
