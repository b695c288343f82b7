import Bytes

/// A 206 to a request for one range, after validation.
public struct ReceivedPart: Sendable, Equatable {
    /// The range of the representation that is its content.
    public let range: Range<Int>
    /// The length of the whole representation, if known.
    public let length: Int?

    /// `nil` if the response is not a usable part: it does not contain the requested range, its content has another
    /// length than its range, or it has several parts (RFC 9110 §15.3.7). A strong entity tag is not required here, but
    /// for combining it with other parts (RFC 9111 §3.4).
    /// - Parameters:
    ///   - status: the response's.
    ///   - contentLength: the length of its content, as its framing announces it.
    public init?(_ fields: FieldView, status: Status, contentLength: Int?, asked: ByteRangeSpec) {
        guard status == .partialContent,
            case .part(let range, let length)? = ContentRange(fields), contentLength ?? range.count == range.count,
            asked.isAnswered(by: range, of: length), !Self.hasSeveralParts(fields)
        else { return nil }
        self.range = range
        self.length = length
    }

    private static func hasSeveralParts(_ fields: FieldView) -> Bool {
        fields.firstValue(of: .contentType)?.hasPrefixIgnoringCase("multipart/byteranges") ?? false
    }

    /// Whether the part is of the same representation as the stored content (RFC 9111 §3.4).
    public func belongs(to content: PartialContent, fields: FieldView, stored: FieldView) -> Bool {
        var both = content
        return PartialContent.mayCombine(stored, fields) && both.add(PartialContent(range, of: length))
    }
}
