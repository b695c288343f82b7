internal import Glibc

/// A file that is appended to, such as a log: closed when it is let go. It blocks as disks do, so it belongs on a thread of its own.
public struct AppendFile: ~Copyable {
    private var descriptor: Descriptor
    private let path: String?

    /// Opens `path`, or creates it readable by its group.
    public init(path: String) throws(SystemError) {
        descriptor = try Self.open(path)
        self.path = path
    }

    /// The process's standard output.
    public static func standardOutput() throws(SystemError) -> AppendFile {
        let copy = dup(STDOUT_FILENO)
        guard copy >= 0 else { throw .last(.open) }
        return AppendFile(Descriptor(adopting: copy))
    }

    private init(_ descriptor: consuming Descriptor) {
        self.descriptor = descriptor
        path = nil
    }

    /// Opens the path again, after it was rotated away. Until that works the old file is written.
    public mutating func reopen() throws(SystemError) {
        guard let path else { return }
        descriptor = try Self.open(path)
    }

    /// Writes all of `bytes`.
    /// - Returns: how many were written and, if that is not all of them, why.
    public func write(_ bytes: Span<UInt8>) -> (written: Int, error: SystemError?) {
        unsafe bytes.withUnsafeBytes { bytes in
            var written = 0
            while written < bytes.count {
                // A pipe that nobody reads must not hold its writer for ever: it may want to end.
                guard isReady() else { return (written, SystemError(.write, code: EAGAIN)) }
                // In bounds by the loop's condition.
                let count = retryingInterrupted {
                    unsafe Glibc.write(descriptor.rawValue, bytes.baseAddress.map { unsafe $0 + written }, min(bytes.count - written, atOnce))
                }
                guard count >= 0 else { return (written, .last(.write)) }
                written += count
            }
            return (written, nil)
        }
    }

    /// What a pipe takes without waiting once it is ready; files take anything.
    private var atOnce: Int { path == nil ? Int(PIPE_BUF) : .max }

    private func isReady() -> Bool {
        guard path == nil else { return true }
        var target = pollfd(fd: descriptor.rawValue, events: Int16(POLLOUT), revents: 0)
        return unsafe poll(&target, 1, 1000) > 0
    }

    private static func open(_ path: String) throws(SystemError) -> Descriptor {
        let number = unsafe Glibc.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o640)
        guard number >= 0 else { throw .last(.open) }
        return Descriptor(adopting: number)
    }
}
