/// Limits on the size of a head; a larger head is refused.
public struct HeadLimits: Sendable, Hashable, BitwiseCopyable {
    /// Bytes from the first of the start line to the end of the empty line.
    public var maxHeadBytes: Int
    public var maxFieldLines: Int
    /// Bytes of the request target.
    public var maxTargetLength: Int

    public init(maxHeadBytes: Int, maxFieldLines: Int, maxTargetLength: Int) {
        self.maxHeadBytes = maxHeadBytes
        self.maxFieldLines = maxFieldLines
        self.maxTargetLength = maxTargetLength
    }

    /// Origins send larger heads than browsers do: policies and cookies. The number of bytes is the default of an
    /// upstream's `max-head-size`; the number of lines is not configurable.
    public static let response = HeadLimits(maxHeadBytes: 65_536, maxFieldLines: 200, maxTargetLength: 0)
    /// For trailer sections of requests and responses. Trailers carry a checksum or a duration: a few lines.
    public static let trailers = HeadLimits(maxHeadBytes: 8192, maxFieldLines: 50, maxTargetLength: 0)

    /// No registered method has more than 17 bytes.
    static let maxMethodLength = 32
    /// Initial capacity; a browser sends about as many.
    static let usualFieldLines = 16
    /// Old clients sent one empty line after a POST (RFC 9112 §2.2).
    static let maxLeadingEmptyLines = 2
}

/// How far a head has been read.
public enum HeadProgress: Sendable, Equatable {
    /// Call again with the same bytes and more.
    case incomplete
    /// The head has this many bytes, including any empty lines before the start line. The bytes after it are the body
    /// or the next message.
    case complete(headLength: Int)
}
