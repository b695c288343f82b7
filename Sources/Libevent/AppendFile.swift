import Glibc

/// Something to append to, such as a log: closed when the value is dropped. A file blocks as disks do, so this belongs
/// on a thread of its own.
///
/// A pipe (standard output or a FIFO) is waited for while it has a reader: up to a second for each write, and after
/// that not at all until it takes bytes again, so that the writing thread can end.
public struct AppendFile: ~Copyable {
    /// How long a reader may take to make room for all of one write.
    private static let patience = Duration.seconds(1)

    /// `nil`: a FIFO that nobody reads.
    private var descriptor: Descriptor?
    private let path: String?
    private var isStalled = false

    /// Opens `path`, or creates it readable by its group. A FIFO without a reader is opened later, when something is
    /// written.
    /// - Throws: if the path cannot be written or created, or no descriptor is left.
    public init(path: String) throws(SystemError) {
        descriptor = try Self.open(path)
        self.path = path
    }

    /// The process's standard output.
    /// - Throws: if it is closed, or no descriptor is left for one of our own.
    public static func standardOutput() throws(SystemError) -> AppendFile {
        let mode = fcntl(STDOUT_FILENO, F_GETFL)
        // Something else stands in its place when it is closed, which opened again would take anything.
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

    /// `false`: it is a FIFO that nobody reads.
    public var isOpen: Bool { descriptor != nil }

    /// Whether it is read by somebody, or should be, rather than kept on a disk.
    public var hasReader: Bool {
        if let number, case .disk = FileKind(number) { false } else { true }
    }

    /// Whether it is a file on a disk that has no byte.
    public var isEmpty: Bool {
        guard let number, case .disk = FileKind(number) else { return false }
        var status = stat()
        return unsafe fstat(number, &status) == 0 && status.st_size == 0
    }

    /// Opens the path again, after it was rotated away. Until that works the old file is written.
    /// - Throws: if the path cannot be written or created, or no descriptor is left; the old file stays in use.
    public mutating func reopen() throws(SystemError) {
        guard let path else { return }
        // If its reader has left, the old descriptor works again as soon as there is another.
        if let new = try Self.open(path) { descriptor = consume new }
    }

    /// Writes all of `bytes`.
    /// - Returns: how many were written and, if that is not all of them, why.
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
                // In bounds by the loop's condition.
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

    /// - Returns: `nil` for a FIFO that nobody reads.
    private static func open(_ path: String) throws(SystemError) -> Descriptor? {
        // Without waiting: otherwise opening a FIFO would wait for a reader, perhaps forever.
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
