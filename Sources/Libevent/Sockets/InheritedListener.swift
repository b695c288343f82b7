import CLibevent
import Glibc

/// A socket that already listens when the program starts, passed by the service manager (sd_listen_fds(3)). The
/// listeners of one or several loops all accept from its single queue.
///
/// The service manager keeps the socket open as well: a client that connects while the program is stopped or restarting
/// waits in that queue. So this program must not remove a Unix socket's path. Immutable, so any thread may hold it.
public final class InheritedListener: Sendable {
    /// The reason why a passed socket cannot be used.
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

    /// The address that the socket listens on.
    public let address: SocketAddress
    private let descriptor: Descriptor

    /// The first descriptor after the standard ones (`SD_LISTEN_FDS_START`).
    private static let firstDescriptor: Int32 = 3

    /// Takes all sockets passed to this process, and removes the `LISTEN_` variables, which are not meant for programs
    /// that this one starts. Call this once, while there is one thread.
    /// - Throws: if a passed descriptor is not a listening stream socket.
    public static func takeAll() throws(Failure) -> [InheritedListener] {
        let (process, count) = (take("LISTEN_PID"), take("LISTEN_FDS"))
        _ = take("LISTEN_FDNAMES")
        // Otherwise the sockets were passed to the program that started this one.
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
        // As for sockets that `Listener` binds. Accepted connections inherit the option.
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
