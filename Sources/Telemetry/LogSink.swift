/// Where the bytes of the access log go: a file, standard output, or a test. The descriptor lives in the target that may
/// call C; here is only what the writer asks of it. Called on the writer's thread alone.
public protocol LogSink: ~Copyable {
    /// Writes all of `bytes`, waiting as long as that takes; a short write is to be continued inside.
    mutating func write(_ bytes: Span<UInt8>) -> LogWriteResult

    /// Opens the same path again and lets go of the old file; after a failure the old one stays in use.
    /// - Returns: `nil`, or why not (`errno`).
    mutating func reopen() -> Int32?
}

/// What became of one `LogSink.write`.
public enum LogWriteResult: Sendable, Equatable {
    case complete
    /// Given up after `written` bytes, 0 or more, for the reason `code` (`errno`): no space, a pipe whose reader left.
    case failed(written: Int, code: Int32)
}
