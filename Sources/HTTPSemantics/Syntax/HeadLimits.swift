/// How much of a head is read before it is refused.
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

    /// Origins send larger heads than browsers do: policies and cookies. The bytes are what `max-head-size` says by
    /// default, the lines are no setting.
    public static let response = HeadLimits(maxHeadBytes: 65_536, maxFieldLines: 200, maxTargetLength: 0)
    /// Of requests and responses. They tell of a check sum or how long something took: a few lines.
    public static let trailers = HeadLimits(maxHeadBytes: 8192, maxFieldLines: 50, maxTargetLength: 0)

    /// No registered method has more than 17 bytes.
    static let maxMethodLength = 32
    /// Room made at first; a browser sends about as many.
    static let usualFieldLines = 16
    /// Old clients sent one after a POST (RFC 9112 §2.2).
    static let maxLeadingEmptyLines = 2
}

/// How far a head has been read.
public enum HeadProgress: Sendable, Equatable {
    /// Call again with the same bytes and more.
    case incomplete
    /// The head has that many bytes, any empty lines before it included. The rest is the body, or the next message.
    case complete(headLength: Int)
}
