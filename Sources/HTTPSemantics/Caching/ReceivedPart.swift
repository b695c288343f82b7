import Bytes

/// A 206 to a request for one range, as far as it is to be believed.
public struct ReceivedPart: Sendable, Equatable {
    /// What part of the representation its content is.
    public let range: Range<Int>
    /// The length of the whole, if it is known.
    public let length: Int?

    /// `nil` where it cannot be taken for a part: it is not the range that was asked for, its content has another
    /// length than its range, or it has several parts (RFC 9110 §15.3.7). It need have no strong entity tag: that
    /// only lets it go with others (RFC 9111 §3.4).
    /// - Parameters:
    ///   - status: of the response.
    ///   - contentLength: of its content, as its framing announces it.
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

    /// Whether it is of the same representation as what is stored (RFC 9111 §3.4).
    public func belongs(to content: PartialContent, fields: FieldView, stored: FieldView) -> Bool {
        var both = content
        return PartialContent.mayCombine(stored, fields) && both.add(PartialContent(range, of: length))
    }
}
