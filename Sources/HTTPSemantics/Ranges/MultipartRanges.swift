public import Bytes

/// The framing of a `multipart/byteranges` body (RFC 9110 §14.6): a head before each part and an end after the last.
public struct MultipartRanges: Sendable {
    /// Offsets in the representation, in the order of sending.
    public let ranges: [Range<Int>]
    /// Bytes of the whole representation.
    public let length: Int
    private let boundary: ByteSlice
    private let contentType: ByteSlice?

    /// - Parameters:
    ///   - length: bytes of the whole representation.
    ///   - boundary: 1 to 70 letters and digits that do not occur in the body, for example a random number.
    ///   - contentType: the representation's, which each part repeats.
    public init(_ ranges: [Range<Int>], of length: Int, boundary: ByteSlice, contentType: ByteSlice?) {
        self.ranges = ranges
        self.length = length
        self.boundary = boundary
        self.contentType = contentType
    }

    /// Appends the value of the message's own `Content-Type`. The message has no `Content-Range` of its own
    /// (§15.3.7.2).
    public func writeContentType(to buffer: ByteBuffer) {
        buffer.append("multipart/byteranges; boundary=")
        buffer.append(boundary)
    }

    /// Appends the delimiter and head before the bytes of `ranges[index]`.
    public func writePartHead(_ index: Int, to buffer: ByteBuffer) {
        buffer.append("\r\n--")
        buffer.append(boundary)
        buffer.append("\r\n")
        if let contentType {
            buffer.append("Content-Type: ")
            buffer.append(contentType)
            buffer.append("\r\n")
        }
        buffer.append("Content-Range: ")
        ContentRange.part(ranges[index], of: length).write(to: buffer)
        buffer.append("\r\n\r\n")
    }

    /// Appends the delimiter after the last part.
    public func writeEnd(to buffer: ByteBuffer) {
        buffer.append("\r\n--")
        buffer.append(boundary)
        buffer.append("--\r\n")
    }

    /// The `Content-Length` of the message.
    public var contentLength: Int {
        let frame = ByteBuffer(capacity: 256)
        var total = 0
        for index in ranges.indices {
            frame.removeAll()
            writePartHead(index, to: frame)
            total += frame.count + ranges[index].count
        }
        frame.removeAll()
        writeEnd(to: frame)
        return total + frame.count
    }
}
