import Glibc

/// A socket that listens already when the program starts, handed over by its service manager (sd_listen_fds(3)), for
/// the listeners of one loop or of several, which all accept from its one queue.
///
/// The manager keeps it open as well: whoever connects while the program is not there, or is being started anew, waits
/// in that queue. So a path in the file system is not ours to remove. Immutable, so any thread may hold it.
public final class InheritedListener: Sendable {
    /// Why what was handed over cannot be used.
    public enum Failure: Error, Sendable, CustomStringConvertible {
        case notOpen(descriptor: Int32)
        case notListening(descriptor: Int32)
        case notConfigured(SocketAddress)
        case handedOverTwice(SocketAddress)

        public var description: String {
            switch self {
            case .notOpen(let descriptor): "descriptor \(descriptor), announced by LISTEN_FDS, is not open"
            case .notListening(let descriptor):
                "descriptor \(descriptor), passed by the service manager, is not a listening stream socket"
            case .notConfigured(let address):
                "the service manager passed a socket listening on \(address), which is neither in listen nor admin.address; add it there, or remove it from the socket unit"
            case .handedOverTwice(let address):
                "the service manager passed two sockets listening on \(address); remove one from the socket unit"
            }
        }
    }

    /// Where it listens.
    public let address: SocketAddress
    private let descriptor: Descriptor

    /// Behind the standard ones.
    private static let firstDescriptor: Int32 = 3

    /// Takes all that were handed over to this process, and removes the variables that say so: they do not mean
    /// programs started from here. To be called once, while there is one thread.
    /// - Throws: if something else was handed over.
    public static func takeAll() throws(Failure) -> [InheritedListener] {
        let (process, count) = (take("LISTEN_PID"), take("LISTEN_FDS"))
        _ = take("LISTEN_FDNAMES")
        // Not for us: it went to a program that started us.
        guard let process, Int32(process) == getpid(), let count = count.flatMap({ Int32($0) }), count > 0 else {
            return []
        }
        var all: [InheritedListener] = []
        for index in 0..<count { all.append(try InheritedListener(firstDescriptor + index)) }
        return all
    }

    private static func take(_ variable: String) -> String? {
        defer { _ = unsafe unsetenv(variable) }
        return unsafe getenv(variable).map { unsafe String(cString: $0) }
    }

    private init(_ number: Int32) throws(Failure) {
        guard fcntl(number, F_SETFD, FD_CLOEXEC) == 0 else { throw .notOpen(descriptor: number) }
        descriptor = Descriptor(adopting: number)
        guard Self.option(SO_TYPE, of: number) == Int32(SOCK_STREAM.rawValue),
            Self.option(SO_ACCEPTCONN, of: number) == 1,
            let address = try? unsafe SocketAddress.asking(.getsockname, number, { unsafe getsockname($0, $1, $2) }),
            fcntl(number, F_SETFL, fcntl(number, F_GETFL) | O_NONBLOCK) == 0
        else { throw .notListening(descriptor: number) }
        self.address = address
        // As where we bind ourselves. Accepted connections inherit it.
        if address.port != nil { try? descriptor.setOption(Int32(IPPROTO_TCP), TCP_NODELAY, 1) }
    }

    private static func option(_ name: Int32, of number: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return unsafe getsockopt(number, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }

    /// Duplicates the socket for one more listener.
    func duplicate() throws(SystemError) -> Descriptor { try Descriptor(duplicating: descriptor.rawValue) }
}

extension [InheritedListener] {
    func listening(at address: SocketAddress) -> InheritedListener? { first { $0.address == address } }
}
