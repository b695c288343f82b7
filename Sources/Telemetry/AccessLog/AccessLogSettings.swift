/// The destination of the access log, and how it is written.
public struct AccessLogSettings: Sendable, Equatable {
    /// Off: on a busy proxy, a log that no operator asked for costs more than the hits that it reports.
    public var target = AccessLogTarget.off
    public var format = AccessLogFormat.combined
    /// The longest time that a finished request waits to be written: short enough to watch the log live.
    public var flushWait: Duration = .seconds(1)
    /// Bytes of records that may wait on one loop; a record that does not fit is dropped and counted. As many bytes may
    /// wait for the writer, and as many may be with the writer. The default is about 7,000 requests of common size,
    /// some 50 ms at full speed.
    public var batchCapacity = 1 << 20
    /// Bytes of records for which the writer is woken: some 150 to 400 requests, so that they are still in the cache of
    /// the core that wrote them, and the writer, if it shares that core, holds up the loop for less than 0.2 ms.
    static let mark = 32 << 10
    /// Formatted bytes given to the sink at a time: a few hundred lines for one `write`.
    static let flushSize = 64 << 10

    public init() {}

    /// The destination, for messages.
    public var path: String {
        switch target {
        case .off: "off"
        case .standardOutput: "stdout"
        case .file(let path): path
        }
    }
}

/// The destination of the access log.
public enum AccessLogTarget: Sendable, Hashable {
    case off
    case standardOutput
    /// Appended to, and opened again on `SIGHUP` and `SIGUSR1`.
    case file(path: String)
}

/// The format of a line of the access log.
public enum AccessLogFormat: UInt8, PublicName {
    /// The combined format of Apache and nginx, with `key=value` pairs after it.
    case combined
    /// One JSON object (RFC 8259) per line.
    case json

    public var name: StaticString {
        switch self {
        case .combined: "combined"
        case .json: "json"
        }
    }
}
