/// The destination of the access log: a file, standard output, or a test. The descriptor belongs to the target that may
/// call C; this protocol has only the methods that the writer needs. Called on the writer's thread only.
public protocol AccessLogSink: ~Copyable {
    /// Writes all of `bytes`, and waits as long as that takes. A short write must be continued inside.
    mutating func write(_ bytes: Span<UInt8>) -> AccessLogWriteResult

    /// Opens the same path again and closes the old file. After a failure the old file stays in use.
    /// - Returns: `nil`, or the reason for the failure (`errno`).
    mutating func reopen() -> Int32?

    /// Whether the sink is a file to which no byte has been written yet.
    var isEmpty: Bool { get }
}

/// The outcome of one `AccessLogSink.write`.
public enum AccessLogWriteResult: Sendable, Equatable {
    case complete
    /// Given up after `written` bytes, 0 or more, for the reason `code` (`errno`): no space, or a pipe that has lost
    /// its reader.
    case failed(written: Int, code: Int32)
}
