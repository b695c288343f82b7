/// The numbers of the access log, with their reasons.
public enum LogSettings {
    /// Bytes of records that may wait on one loop: about 3 000 requests of common size, some 30 ms at full speed.
    public static let ringCapacity = 1 << 20
    /// Formatted bytes given to the sink at a time: a few hundred lines for one `write`.
    public static let flushSize = 64 << 10
}

/// How a line of the access log looks.
public enum LogFormat: UInt8, PublicName {
    /// The combined format of Apache and nginx, with `key=value` pairs after it.
    case combined
    /// One JSON object (RFC 8259) a line.
    case json

    public var name: String {
        switch self {
        case .combined: "combined"
        case .json: "json"
        }
    }
}
