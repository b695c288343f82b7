import CLibevent
import Glibc

/// One open file descriptor with one owner. Dropping the value closes the descriptor.
public struct Descriptor: ~Copyable, Sendable {
    /// For system calls only: this value still closes the descriptor.
    public let rawValue: Int32

    /// Takes over `rawValue`, which must be open and must have no other owner.
    public init(adopting rawValue: Int32) {
        self.rawValue = rawValue
    }

    /// Hands the descriptor over to the caller, which must close it.
    public consuming func take() -> Int32 {
        let rawValue = rawValue
        discard self
        return rawValue
    }

    deinit { _ = Glibc.close(rawValue) }

    /// A new non-blocking stream socket of the family of `address`. Programs started by this one do not inherit it.
    static func stream(for address: SocketAddress) throws(SystemError) -> Descriptor {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let number = Glibc.socket(address.family, type, 0)
        guard number >= 0 else { throw .last(.socket) }
        return Descriptor(adopting: number)
    }

    /// Another descriptor of the same open file.
    init(duplicating number: Int32) throws(SystemError) {
        // 0: any number is accepted. `F_DUPFD_CLOEXEC`: programs started by this one do not inherit the descriptor.
        let copy = fcntl(number, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw .last(.duplicate) }
        self.init(adopting: copy)
    }

    /// Binds a socket to `address`; on failure `errno` holds the reason.
    func bind(to address: SocketAddress) -> Bool {
        let number = rawValue
        return unsafe address.withMemory { unsafe Glibc.bind(number, $0, $1) } == 0
    }

    func setOption(_ level: Int32, _ name: Int32, _ value: Int32) throws(SystemError) {
        try setSocketOption(rawValue, level, name, value)
    }
}

func setSocketOption<Value>(
    _ descriptor: Int32, _ level: Int32, _ name: Int32, _ value: Value
) throws(SystemError) where Value: BitwiseCopyable {
    let result = unsafe withUnsafePointer(to: value) { pointer in
        unsafe setsockopt(descriptor, level, name, pointer, socklen_t(MemoryLayout<Value>.size))
    }
    guard result == 0 else { throw .last(.setOption) }
}
