import Glibc

/// The reason why an address cannot be listened on.
public struct ListenError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reasons that an operator can act on.
    public enum Reason: Sendable {
        case addressInUse
        case noPermission
        /// The address is not one of this machine, or the path is impossible.
        case addressUnavailable
        /// A file that is not a socket is at the path, and is left alone.
        case notASocket
        case other
    }

    /// The address to listen on.
    public let address: SocketAddress
    /// The call that failed, with its `errno`.
    public let cause: SystemError

    /// The cause as one of the reasons above.
    public var reason: Reason {
        switch cause.code {
        case EADDRINUSE: .addressInUse
        case EEXIST: .notASocket
        case EACCES, EPERM, EROFS: .noPermission
        case EADDRNOTAVAIL, EAFNOSUPPORT, ENOENT, ENOTDIR, ENAMETOOLONG, EINVAL: .addressUnavailable
        default: .other
        }
    }

    public var description: String { "cannot listen on \(address): \(cause.message)\(advice)" }

    private var isPath: Bool { if case .unix = address { true } else { false } }

    /// Advice for the operator.
    private var advice: String {
        switch reason {
        case .addressInUse: "; stop the program that is using it, or choose another address"
        case .noPermission where isPath: "; its directory must be writable"
        case .noPermission: "; ports below 1024 need CAP_NET_BIND_SERVICE"
        case .addressUnavailable where isPath:
            cause.code == ENAMETOOLONG
                ? "; choose a shorter path" : "; create its directory, or choose another path"
        case .addressUnavailable: "; choose an address of this machine"
        case .notASocket: ", and it is not a socket; choose another path, or move the file away"
        case .other: ""
        }
    }
}
