import Glibc

/// The system calls that can fail here, with the names that logs show.
public enum SystemCall: String, Sendable {
    case accept, bind, chmod, connect, duplicate = "dup", eventBase = "event_base_new", eventfd, getsockname,
        getpeername, listen
    case open, pthreadCreate = "pthread_create", receive = "recv", send = "sendmsg", setDescriptorLimit = "setrlimit"
    case setOption = "setsockopt", shutdown, socket, socketpair, spawn = "posix_spawn", watch = "event_add", write
}

/// A failed call and its `errno`.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The system call that failed.
    public let call: SystemCall
    /// The `errno` the call left.
    public let code: Int32

    /// - Parameter code: an `errno`.
    public init(_ call: SystemCall, code: Int32) {
        self.call = call
        self.code = code
    }

    /// The present `errno`. Must be called directly after the failed call.
    static func last(_ call: SystemCall) -> SystemError { SystemError(call, code: errno) }

    /// The code's meaning in words. Makes a `String`: not for the hot path.
    public var message: String {
        // In glibc ≥ 2.32 `strerror` returns constant or thread-local memory; the text is copied at once.
        guard let text = unsafe strerror(code) else { return "error \(code)" }
        return unsafe String(cString: text)
    }

    public var description: String { "\(call.rawValue): \(message)" }

    /// Whether this machine has run out of descriptors, ports or memory, through no fault of the peer.
    public var isShortageHere: Bool {
        switch code {
        case EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL: true
        default: false
        }
    }

    /// Whether this machine has no route to such addresses, as to IPv6 addresses on a machine with IPv4 only.
    public var isUnreachableNetwork: Bool { code == ENETUNREACH || code == EAFNOSUPPORT }

    /// Whether there is no route to the address, or to any of its family.
    public var isUnreachable: Bool { isUnreachableNetwork || code == EHOSTUNREACH }

    /// Whether the reader of a pipe leaves no room at present.
    public var isForNow: Bool { code == EAGAIN }

    /// Whether a FIFO has no reader.
    public var isWithoutReader: Bool { code == ENXIO }

    /// The end of an encrypted connection that the peer has not announced.
    public static let cut = SystemError(.receive, code: ECONNABORTED)

    /// Whether the peer has reset the connection.
    public var isReset: Bool { code == ECONNRESET }

    /// Whether there is no such file, or no folder for it.
    public var isMissing: Bool { code == ENOENT }

    /// Whether the program's user lacks the permission.
    public var isForbidden: Bool { code == EACCES || code == EPERM }
}

/// Repeats `body` as long as a signal interrupts it.
@inline(__always)
func retryingInterrupted(_ body: () -> Int) -> Int {
    while true {
        let result = body()
        if result < 0 && errno == EINTR { continue }
        return result
    }
}
