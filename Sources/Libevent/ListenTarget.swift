/// Where the listeners of several loops accept.
public enum ListenTarget: Sendable {
    /// Each listener binds it itself and shares the port (`SO_REUSEPORT`).
    case port(SocketAddress)
    /// Bound once; all listeners share it.
    case path(UnixListener, SocketAddress)
    /// Listens already; all listeners share it.
    case inherited(InheritedListener)

    /// Takes the socket among `inherited` that listens there, if there is one. Otherwise opens a unix socket, or finds
    /// out whether a port is free, which a listener that shares it would not notice. To be asked before the first
    /// listener.
    /// - Throws: where somebody else listens there, or the machine has no such address or may not use it
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

    /// Where clients connect.
    public var address: SocketAddress {
        switch self {
        case .port(let address), .path(_, let address): address
        case .inherited(let listener): listener.address
        }
    }
}
