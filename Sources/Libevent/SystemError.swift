import Glibc

/// The calls of the operating system that can fail here, by the name under which a log shows them.
public enum SystemCall: String, Sendable {
    case accept, bind, chmod, connect, duplicate = "dup", eventBase = "event_base_new", eventfd, getsockname,
        getpeername, listen
    case open, pthreadCreate = "pthread_create", receive = "recv", send = "sendmsg", setDescriptorLimit = "setrlimit"
    case setOption = "setsockopt", shutdown, socket, watch = "event_add", write
}

/// A failed call and its `errno`.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Which system call failed.
    public let call: SystemCall
    /// The `errno` the call left.
    public let code: Int32

    /// - Parameter code: an `errno`.
    public init(_ call: SystemCall, code: Int32) {
        self.call = call
        self.code = code
    }

    /// `errno` as it stands now. Must be the first thing after the failed call.
    static func last(_ call: SystemCall) -> SystemError { SystemError(call, code: errno) }

    /// What the code means, in words. Makes a `String`: not for the hot path.
    public var message: String {
        // `strerror` answers from constant or thread-local memory in glibc ≥ 2.32; copied at once.
        guard let text = unsafe strerror(code) else { return "error \(code)" }
        return unsafe String(cString: text)
    }

    public var description: String { "\(call.rawValue): \(message)" }

    /// This machine has run out of descriptors, ports or memory: nothing that the other end did.
    public var isShortageHere: Bool {
        switch code {
        case EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL: true
        default: false
        }
    }

    /// This machine has no way to such addresses, as to IPv6 ones where it has IPv4 only.
    public var isUnreachableNetwork: Bool { code == ENETUNREACH || code == EAFNOSUPPORT }

    /// There is no way to the address, or none from here to any like it.
    public var isUnreachable: Bool { isUnreachableNetwork || code == EHOSTUNREACH }

    /// The reader of a pipe leaves no room.
    public var isForNow: Bool { code == EAGAIN }

    /// A FIFO has no reader.
    public var isWithoutReader: Bool { code == ENXIO }

    /// The peer has thrown the connection away.
    public var isReset: Bool { code == ECONNRESET }

    /// There is no such file, or no folder for it.
    public var isMissing: Bool { code == ENOENT }

    /// Whether the program's user may not do this.
    public var isForbidden: Bool { code == EACCES || code == EPERM }
}

/// Runs `body` again for as long as a signal interrupts it.
@inline(__always)
func retryingInterrupted(_ body: () -> Int) -> Int {
    while true {
        let result = body()
        if result < 0 && errno == EINTR { continue }
        return result
    }
}
