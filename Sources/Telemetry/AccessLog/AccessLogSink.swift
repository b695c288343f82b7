/// Where the bytes of the access log go: a file, standard output, or a test. The descriptor belongs to the target that
/// may call C; this is only what the writer asks of it. Called on the writer's thread only.
public protocol AccessLogSink: ~Copyable {
    /// Writes all of `bytes`, waiting as long as that takes; a short write is to be continued inside.
    mutating func write(_ bytes: Span<UInt8>) -> AccessLogWriteResult

    /// Opens the same path again and closes the old file; after a failure the old one stays in use.
    /// - Returns: `nil`, or why not (`errno`).
    mutating func reopen() -> Int32?

    /// Whether it is a file in which nothing has been written yet.
    var isEmpty: Bool { get }
}

/// What became of one `AccessLogSink.write`.
public enum AccessLogWriteResult: Sendable, Equatable {
    case complete
    /// Given up after `written` bytes, 0 or more, for the reason `code` (`errno`): no space, a pipe whose reader has
    /// left.
    case failed(written: Int, code: Int32)
}
