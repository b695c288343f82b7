import CLibevent
import Glibc
import Synchronization

/// A socket that listens: bound by this program, or passed to it. The listeners of one or several loops accept from its
/// single queue.
///
/// Immutable but for one flag, so any thread may hold it. When the last owner drops it, the socket is closed, which
/// resets the connections in its queue, unless another program has the socket open too. Then the path of a Unix socket
/// is removed, unless another program is to keep it or another file is there by then.
public final class ListeningSocket: Sendable {
    /// The address on which the socket listens, with the port that the kernel chose.
    public let address: SocketAddress
    /// Whether the service manager keeps the socket open for the next program that accepts on it.
    public let isKept: Bool
    let descriptor: Descriptor
    /// With which `listen` begins to listen; `nil` if another program has done that.
    private let backlog: Int32?
    /// The file of a Unix socket.
    private let file: File?
    private let removesPath: Atomic<Bool>

    /// Binds `address` and listens, with the backlog and the permissions of `settings`. A Unix socket that an ended
    /// program left at the path is replaced. A socket that another program listens at, or a file that is not a socket,
    /// is not replaced.
    /// - Parameter listens: otherwise `listen` begins that, and until then no connection comes here.
    /// - Throws: if another program listens there, another file is there, or the machine lacks the address or may not
    ///   use it (`ListenError.reason`).
    public init(
        _ address: SocketAddress, _ settings: Listener.Settings = Listener.Settings(), listens: Bool = true
    ) throws(ListenError) {
        do throws(SystemError) {
            if case .unix(let path) = address {
                descriptor = try Self.bind(path, address)
                file = File(at: path)
                // No client can have connected before `listen`.
                if let mode = settings.pathMode, unsafe chmod(path, mode) != 0 { throw .last(.chmod) }
            } else {
                descriptor = try Self.bind(address, settings)
                file = nil
            }
            self.address = try unsafe .asking(.getsockname, descriptor.rawValue) { unsafe getsockname($0, $1, $2) }
        } catch {
            throw ListenError(address: address, cause: error)
        }
        isKept = false
        backlog = settings.backlog
        removesPath = Atomic(true)
        if listens { try listen() }
    }

    /// Takes over a socket that another program has passed on; `nil` if the descriptor is not that of a listening
    /// stream socket, and is then closed. The path of a Unix socket stays, until `takePath`.
    /// - Parameter isKept: whether it is the service manager that passed it.
    init?(adopting descriptor: consuming Descriptor, isKept: Bool) {
        let number = descriptor.rawValue
        guard Self.option(SO_TYPE, of: number) == Int32(SOCK_STREAM.rawValue),
            Self.option(SO_ACCEPTCONN, of: number) == 1,
            let address = try? unsafe SocketAddress.asking(.getsockname, number, { unsafe getsockname($0, $1, $2) }),
            fcntl(number, F_SETFL, fcntl(number, F_GETFL) | O_NONBLOCK) == 0
        else { return nil }
        // As for sockets bound here. Accepted connections inherit the option.
        if address.port != nil { try? descriptor.setOption(Int32(IPPROTO_TCP), TCP_NODELAY, 1) }
        self.address = address
        self.isKept = isKept
        backlog = nil
        self.descriptor = descriptor
        if case .unix(let path) = address { file = File(at: path) } else { file = nil }
        removesPath = Atomic(false)
    }

    deinit {
        guard removesPath.load(ordering: .relaxed), case .unix(let path) = address, let file, File(at: path) == file
        else { return }
        _ = unsafe unlink(path)
    }

    /// From now on the socket listens, if it did not. The kernel then spreads the connections at a shared port over one
    /// more queue.
    /// - Throws: if another program listens there by now, or memory is short.
    public func listen() throws(ListenError) {
        guard let backlog, Glibc.listen(descriptor.rawValue, backlog) != 0 else { return }
        throw ListenError(address: address, cause: .last(.listen))
    }

    /// Asks the kernel.
    var isListening: Bool { Self.option(SO_ACCEPTCONN, of: descriptor.rawValue) == 1 }

    /// From now on the path of a Unix socket belongs to another program, which accepts on the same socket. Any thread.
    public func leavePath() { removesPath.store(false, ordering: .relaxed) }

    /// From now on the path of a Unix socket belongs to this program, unless the service manager keeps the socket. Any
    /// thread.
    public func takePath() { removesPath.store(!isKept, ordering: .relaxed) }

    private static func option(_ name: Int32, of number: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return unsafe getsockopt(number, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }
}

// MARK: - Ports

extension ListeningSocket {
    /// A socket that is bound to the port of `address` and does not listen yet.
    static func bind(_ address: SocketAddress, _ settings: Listener.Settings) throws(SystemError) -> Descriptor {
        let descriptor = try Descriptor.stream(for: address)
        // Connections in TIME_WAIT must not keep a restarted program from its port.
        try descriptor.setOption(SOL_SOCKET, SO_REUSEADDR, 1)
        if settings.sharesPort { try descriptor.setOption(SOL_SOCKET, SO_REUSEPORT, 1) }
        // `[::]` must not take IPv4 as well, so that `0.0.0.0` can be listened on beside it.
        if case .ipv6 = address { try descriptor.setOption(Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1) }
        // Accepted connections inherit the option.
        try descriptor.setOption(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        guard descriptor.bind(to: address) else { throw .last(.bind) }
        return descriptor
    }
}

// MARK: - Paths

extension ListeningSocket {
    /// The identity of the file at a path.
    private struct File: Equatable {
        let device: dev_t
        let number: ino_t
        let isSocket: Bool

        /// `nil` if there is no file. A symbolic link is not followed.
        init?(at path: String) {
            var status = stat()
            guard unsafe lstat(path, &status) == 0 else { return nil }
            device = status.st_dev
            number = status.st_ino
            isSocket = status.st_mode & S_IFMT == S_IFSOCK
        }
    }

    private static func bind(_ path: String, _ address: SocketAddress) throws(SystemError) -> Descriptor {
        let descriptor = try Descriptor.stream(for: address)
        if descriptor.bind(to: address) { return descriptor }
        let error = SystemError.last(.bind)
        guard error.code == EADDRINUSE else { throw error }
        // `isAbandoned` alone cannot tell: connecting to a file that is not a socket is refused as well.
        guard let file = File(at: path), file.isSocket else { throw SystemError(.bind, code: EEXIST) }
        guard isAbandoned(address), unsafe unlink(path) == 0 else { throw error }
        guard descriptor.bind(to: address) else { throw .last(.bind) }
        return descriptor
    }

    /// Whether no program listens at the socket's path, which outlives the program that bound it.
    private static func isAbandoned(_ address: SocketAddress) -> Bool {
        guard let descriptor = try? Descriptor.stream(for: address) else { return false }
        let number = descriptor.rawValue
        return unsafe address.withMemory { unsafe Glibc.connect(number, $0, $1) } != 0 && errno == ECONNREFUSED
    }
}
