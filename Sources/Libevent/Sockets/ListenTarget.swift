/// The place at which the listeners of several loops accept.
public enum ListenTarget: Sendable {
    /// Each listener binds the address itself and shares the port (`SO_REUSEPORT`).
    case port(SocketAddress)
    /// A Unix socket, bound once and shared by all listeners.
    case path(UnixListener, SocketAddress)
    /// A socket that already listens, shared by all listeners.
    case inherited(InheritedListener)

    /// Takes the socket among `inherited` that listens on `address`, if there is one. Otherwise opens a Unix socket, or
    /// tests whether the port is free, which a listener with a shared port would not notice. Call this before making
    /// the first listener.
    /// - Throws: if another socket listens there, or the machine lacks the address or may not use it
    ///   (`ListenError.reason`).
    public init(
        _ address: SocketAddress, _ settings: Listener.Settings = Listener.Settings(),
        from inherited: [InheritedListener] = []
    ) throws(ListenError) {
        if let listener = inherited.listening(at: address) {
            self = .inherited(listener)
        } else if case .unix(let path) = address {
            self = .path(try UnixListener(path, settings), address)
        } else {
            try Listener.probe(address)
            self = .port(address)
        }
    }

    /// The address to which clients connect.
    public var address: SocketAddress {
        switch self {
        case .port(let address), .path(_, let address): address
        case .inherited(let listener): listener.address
        }
    }
}
