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
