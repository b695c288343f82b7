import Glibc

/// A file, pipe or terminal that is appended to, such as a log. Dropping the value closes it. Writing to a disk can
/// block, so use this type on a thread of its own.
///
/// A write to a pipe (standard output or a FIFO) waits for the pipe's reader, at most one second. After such a timeout,
/// writes do not wait until the pipe takes bytes again, so that the writing thread can end.
public struct AppendFile: ~Copyable {
    /// How long the reader may take to make room for all bytes of one write.
    private static let patience = Duration.seconds(1)

    /// `nil` for a FIFO without a reader.
    private var descriptor: Descriptor?
    private let path: String?
    private var isStalled = false

    /// Opens `path`, or creates the file, readable by its group. A FIFO without a reader is opened by a later write.
    /// - Throws: if the path cannot be written or created, or no descriptor is left.
    public init(path: String) throws(SystemError) {
        descriptor = try Self.open(path)
        self.path = path
    }

    /// The process's standard output.
    /// - Throws: if standard output is closed, or no descriptor is left for the duplicate.
    public static func standardOutput() throws(SystemError) -> AppendFile {
        let mode = fcntl(STDOUT_FILENO, F_GETFL)
        // If standard output was closed, a read-only file stands in its place. Reopened for writing, that file would
        // accept any bytes.
        guard mode < 0 || mode & O_ACCMODE != O_RDONLY else { throw SystemError(.open, code: EBADF) }
        if case .stream = FileKind(STDOUT_FILENO), let own = try? Descriptor(reopening: STDOUT_FILENO) {
            return AppendFile(own)
        }
        return AppendFile(try Descriptor(duplicating: STDOUT_FILENO))
    }

    private init(_ descriptor: consuming Descriptor) {
        self.descriptor = consume descriptor
        path = nil
    }

    /// `false` for a FIFO without a reader.
    public var isOpen: Bool { descriptor != nil }

    /// Whether a reader takes the bytes (a pipe, socket or terminal, also a FIFO without a reader), rather than a disk.
    public var hasReader: Bool {
        if let number, case .disk = FileKind(number) { false } else { true }
    }

    /// Whether this is an empty file on a disk.
    public var isEmpty: Bool {
        guard let number, case .disk = FileKind(number) else { return false }
        var status = stat()
        return unsafe fstat(number, &status) == 0 && status.st_size == 0
    }

    /// Opens the path again after the file was rotated away. Until that succeeds, writes go to the old file.
    /// - Throws: if the path cannot be written or created, or no descriptor is left; the old file stays in use.
    public mutating func reopen() throws(SystemError) {
        guard let path else { return }
        // For a FIFO whose reader has left, keep the old descriptor: it works again as soon as there is another reader.
        if let new = try Self.open(path) { descriptor = consume new }
    }

    /// Writes all of `bytes`.
    /// - Returns: the number of bytes written and, if that is not all of them, the reason.
    public mutating func write(_ bytes: Span<UInt8>) -> (written: Int, error: SystemError?) {
        do throws(SystemError) {
            if !isOpen { try reopen() }
        } catch {
            return (0, error)
        }
        guard let number else { return (0, SystemError(.open, code: ENXIO)) }
        let atOnce = hasReader ? Int(PIPE_BUF) : .max
        let deadline = ContinuousClock.now + (isStalled ? .zero : Self.patience)
        var written = 0
        while written < bytes.count {
            if atOnce < .max, !isWritable(until: deadline) { return (written, stalled()) }
            let count = unsafe bytes.withUnsafeBytes { bytes in
                // `written` is in bounds by the loop's condition.
                retryingInterrupted {
                    unsafe Glibc.write(
                        number, bytes.baseAddress.map { unsafe $0 + written }, min(bytes.count - written, atOnce))
                }
            }
            guard count >= 0 else { return (written, errno == EAGAIN ? stalled() : .last(.write)) }
            written += count
            isStalled = false
        }
        return (written, nil)
    }

    private var number: Int32? {
        switch descriptor {
        case .some(let open): open.rawValue;
        case .none: nil
        }
    }

    private func isWritable(until deadline: ContinuousClock.Instant) -> Bool {
        switch descriptor {
        case .some(let open): open.isWritable(until: deadline);
        case .none: false
        }
    }

    private mutating func stalled() -> SystemError {
        isStalled = true
        return SystemError(.write, code: EAGAIN)
    }

    /// - Returns: `nil` for a FIFO without a reader.
    private static func open(_ path: String) throws(SystemError) -> Descriptor? {
        // `O_NONBLOCK`, since opening a FIFO would otherwise wait for a reader, perhaps forever.
        let number = unsafe Glibc.open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0o640)
        if number >= 0 { return Descriptor(adopting: number) }
        let error = SystemError.last(.open)
        guard error.code == ENXIO, isFIFO(path) else { throw error }
        return nil
    }

    private static func isFIFO(_ path: String) -> Bool {
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
    }
}
