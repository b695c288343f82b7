public import Bytes

/// The text of the current second, formatted once a second. One per loop.
public struct CachedDate: ~Copyable {
    private var second = Int64.min
    private let text = ByteBuffer(capacity: HTTPDate.length)

    public init() {}

    /// Appends `seconds` since 1970 as IMF-fixdate: 29 bytes.
    public mutating func append(_ seconds: Int64, to buffer: ByteBuffer) {
        if seconds != second {
            text.removeAll()
            HTTPDate.append(seconds, to: text)
            second = seconds
        }
        buffer.append(text.span)
    }
}
