import Bytes

/// Where a message's body ends (RFC 9112 §6).
public enum MessageFraming: Sendable, Hashable, BitwiseCopyable {
    /// No body: the next byte belongs to the next message.
    case none
    /// The body has this many bytes; 0 only if the message states a length of 0.
    case length(UInt64)
    case chunked
    /// The body ends with the connection: responses only.
    case untilClose

    /// The body's length, if the message announces it.
    public var announcedLength: Int? {
        switch self {
        case .none: 0
        case .length(let length): Int(clamping: length)
        case .chunked, .untilClose: nil
        }
    }
}

/// The framing that the fields declare, before RFC 9112 §6.3 decides. Every ambiguity is an error: two parties that
/// frame a message differently make request smuggling possible (RFC 9112 §11.2).
struct DeclaredFraming {
    let length: UInt64?
    let isChunked: Bool

    /// A `Content-Length` list of equal members is refused in a request and taken as one value in a response; RFC 9110
    /// §8.6 allows both.
    init(_ fields: FieldView, _ version: HTTPVersion, allowingEqualLengths: Bool) throws(MessageSyntaxError) {
        let hasLength = fields.contains(.contentLength)
        isChunked = fields.contains(.transferEncoding)
        if isChunked {
            let position = fields.position(of: .transferEncoding)
            // RFC 9112 §6.1: the framing is faulty, even with a Content-Length.
            if version == .http10 { throw MessageSyntaxError(.transferEncodingInHTTP10, at: position) }
            // RFC 9112 §6.3, 3: "ought to be handled as an error".
            if hasLength { throw MessageSyntaxError(.contentLengthWithTransferEncoding, at: position) }
            if let reason = Self.transferEncodingError(fields) { throw MessageSyntaxError(reason, at: position) }
        }
        length = hasLength ? try Self.contentLength(fields, allowingEqualLengths) : nil
    }

    /// The error in any `Transfer-Encoding` other than one line with the one word `chunked`.
    private static func transferEncodingError(_ fields: FieldView) -> MessageSyntaxError.Reason? {
        guard fields.contains(.transferEncoding) else { return nil }
        if let only = fields.onlyValue(of: .transferEncoding), only.isEqualIgnoringCase(to: "chunked") { return nil }
        var codings = ListIterator(fields, .transferEncoding)
        var count = 0
        var chunked = 0
        var isFinal = false
        while let coding = codings.next() {
            count += 1
            isFinal = coding.isEqualIgnoringCase(to: "chunked")
            if isFinal { chunked += 1 }
        }
        if chunked > 1 { return .chunkedRepeated }
        if count == chunked { return .transferEncodingInvalid }
        // RFC 9112 §6.3, 4: a request whose last coding is not chunked MUST get 400; §6.1: others SHOULD get 501.
        return isFinal ? .transferCodingUnknown : .chunkedNotFinal
    }

    private static func contentLength(
        _ fields: FieldView, _ allowingEqualLengths: Bool
    ) throws(MessageSyntaxError) -> UInt64 {
        // The usual case: one line with one number.
        if let value = fields.onlyValue(of: .contentLength)?.decimalValue { return value }
        let position = fields.position(of: .contentLength)
        guard allowingEqualLengths else {
            guard fields.firstValue(of: .contentLength)?.decimalValue != nil else {
                throw MessageSyntaxError(.contentLengthInvalid, at: position)
            }
            throw MessageSyntaxError(.contentLengthRepeated, at: position)
        }
        // RFC 9112 §6.3, 5: all members must be valid and equal.
        var values = ListIterator(fields, .contentLength)
        var length: UInt64?
        while let member = values.next() {
            guard let value = member.decimalValue else { throw MessageSyntaxError(.contentLengthInvalid, at: position) }
            if let length, length != value { throw MessageSyntaxError(.contentLengthRepeated, at: position) }
            length = value
        }
        guard let length else { throw MessageSyntaxError(.contentLengthInvalid, at: position) }
        return length
    }
}

extension FieldView {
    /// Where the first line of `field` starts, for an error.
    func position(of field: KnownField) -> Int {
        firstIndex(of: field).map { Int(lines[$0].name.lower) } ?? 0
    }
}

extension Span where Element == UInt8 {
    /// `1*DIGIT` up to `Int64.max`, so that sums and differences of lengths do not overflow.
    var decimalValue: UInt64? {
        let limit = UInt64(Int64.max)
        guard let value = decimal(saturatingAt: limit + 1), value <= limit else { return nil }
        return value
    }
}
