import Glibc

/// A Unix socket that listens at its path. The listeners of one or several loops all accept from its single queue.
///
/// Immutable, so any thread may hold it. When the last owner drops it, the socket is closed and the path is removed,
/// unless another file is there by then.
public final class UnixListener: Sendable {
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

    private let path: String
    private let descriptor: Descriptor
    private let file: File?

    /// Listens at `path` with the backlog and the permissions of `settings`. A socket that an ended program left there
    /// is replaced. A socket that another program listens at, or a file that is not a socket, is not replaced.
    /// - Throws: if another program listens there, another file is there, or the folder or the system allows no socket
    ///   (`ListenError.reason`).
    public init(_ path: String, _ settings: Listener.Settings = Listener.Settings()) throws(ListenError) {
        let address = SocketAddress.unix(path: path)
        do throws(SystemError) {
            descriptor = try Self.bind(path, address)
            file = File(at: path)
            if let mode = settings.pathMode {
                // No client can have connected before `listen`.
                guard unsafe chmod(path, mode) == 0 else { throw .last(.chmod) }
            }
            guard Glibc.listen(descriptor.rawValue, settings.backlog) == 0 else { throw .last(.listen) }
        } catch {
            throw ListenError(address: address, cause: error)
        }
        self.path = path
    }

    deinit {
        if let file, File(at: path) == file { _ = unsafe unlink(path) }
    }

    /// Duplicates the socket for one more listener.
    func duplicate() throws(SystemError) -> Descriptor { try Descriptor(duplicating: descriptor.rawValue) }

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
