/// The numbers of the access log, with their reasons.
public enum LogSettings {
    /// Bytes of records that may wait on one loop: about 7 000 requests of common size, some 50 ms at full speed. As much may wait for the writer, and as much be with it.
    public static let batchCapacity = 1 << 20
    /// Bytes of records that are worth waking the writer: some 600 requests, so that they are still in the cache of the core that wrote them
    /// and the writer, where it shares that core, holds up the loop for less than a millisecond.
    public static let mark = 128 << 10
    /// Formatted bytes given to the sink at a time: a few hundred lines for one `write`.
    public static let flushSize = 64 << 10
}

/// How a line of the access log looks.
public enum LogFormat: UInt8, PublicName {
    /// The combined format of Apache and nginx, with `key=value` pairs after it.
    case combined
    /// One JSON object (RFC 8259) a line.
    case json

    public var name: StaticString {
        switch self {
        case .combined: "combined"
        case .json: "json"
        }
    }
}
