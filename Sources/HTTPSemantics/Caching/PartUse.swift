public import Bytes

/// What parts of a representation that are stored are good for to one GET (RFC 9111 §3.3).
public enum PartUse: Sendable, Equatable {
    /// All it wants is there, or is known not to be: send it, once fresh.
    case answers
    /// This is to be asked for first: the hull of what is missing.
    case needs(ByteRangeSpec)
    /// Several ranges and not all of them there: as if nothing were stored.
    case nothing

    /// - Parameters:
    ///   - request: the fields of a GET.
    ///   - content: the parts that are stored.
    ///   - stored: their fields, with `facts`.
    ///   - maxRanges: a request with more gets the whole.
    public init(_ request: FieldView, of content: PartialContent, stored: FieldView, facts: ResponseFacts, maxRanges: Int) {
        guard let range = RangeRequest(request, method: .get), range.specs.count <= maxRanges,
              RangeCondition.holds(request, stored: stored, facts: facts) else {
            self.init(wanting: 0..<(content.length ?? .max), of: content)
            return
        }
        guard let length = content.length else {
            self.init(range, ofUnknownLength: content)
            return
        }
        switch range.resolve(length: length) {
        case .whole:
            self.init(wanting: 0..<length, of: content)
        case .single(let wanted):
            self.init(wanting: wanted, of: content)
        case .multiple(let parts):
            self = parts.allSatisfy { content.contains($0) } ? .answers : .nothing
        case .unsatisfiable:
            self = .answers
        }
    }

    private init(wanting wanted: Range<Int>, of content: PartialContent) {
        let missing = content.missing(in: wanted)
        guard let first = missing.first, let last = missing.last else { self = .answers; return }
        self = last.upperBound >= content.length ?? .max
            ? .needs(.from(first.lowerBound)) : .needs(.between(first.lowerBound, last.upperBound - 1))
    }

    private init(_ range: RangeRequest, ofUnknownLength content: PartialContent) {
        guard range.specs.count == 1 else { self = .nothing; return }
        switch range.specs[0] {
        case .from(let first): self.init(wanting: first..<Int.max, of: content)
        case .between(let first, let last): self.init(wanting: first..<last + 1, of: content)
        case .last: self = .needs(range.specs[0])
        }
    }
}

extension RangeRequest {
    /// The one range of a GET that may be asked for without anything being stored: it is the only one, and stands under no condition, since
    /// what an `If-Range` comes to is not known before the response is there.
    public static func only(_ fields: FieldView, method: Method) -> ByteRangeSpec? {
        guard !fields.contains(.ifRange), let range = RangeRequest(fields, method: method), range.specs.count == 1 else { return nil }
        return range.specs[0]
    }
}

extension ByteRangeSpec {
    /// Appends the value of `Range`.
    public func write(to buffer: ByteBuffer) {
        buffer.append("bytes=")
        switch self {
        case .from(let first):
            buffer.append(decimal: first)
            buffer.append("-")
        case .between(let first, let last):
            buffer.append(decimal: first)
            buffer.append("-")
            buffer.append(decimal: last)
        case .last(let count):
            buffer.append("-")
            buffer.append(decimal: count)
        }
    }

    /// Whether a part with `range` of `length` bytes is what was asked for with this, or has that in it (RFC 9110 §15.3.7: a server may
    /// send less, or more).
    public func isAnswered(by range: Range<Int>, of length: Int?) -> Bool {
        switch self {
        case .from(let first):
            return range.lowerBound <= first && range.upperBound == length
        case .between(let first, let last):
            return range.lowerBound <= first && range.upperBound > min(last, (length ?? .max) - 1)
        case .last(let count):
            guard let length else { return false }
            return range.lowerBound <= max(0, length - count) && range.upperBound == length
        }
    }
}

/// A 206 to a request for one range, as far as it is to be believed.
public struct ReceivedPart: Sendable, Equatable {
    /// What part of the representation its content is.
    public let range: Range<Int>
    /// Of the whole, if it is known.
    public let length: Int?

    /// `nil` where it cannot be taken for a part: it is not the range that was asked for, its content has another length than its range, it
    /// has no strong entity tag or several parts (RFC 9111 §3.4, RFC 9110 §15.3.7).
    /// - Parameters:
    ///   - status: of the response.
    ///   - contentLength: of its content, as its framing announces it.
    public init?(_ fields: FieldView, status: Status, contentLength: Int?, asked: ByteRangeSpec) {
        guard status == .partialContent, let tag = fields.entityTag, !tag.isWeak,
              case .part(let range, let length)? = ContentRange(fields), contentLength ?? range.count == range.count,
              asked.isAnswered(by: range, of: length), !Self.hasSeveralParts(fields) else { return nil }
        self.range = range
        self.length = length
    }

    private static func hasSeveralParts(_ fields: FieldView) -> Bool {
        guard let line = fields.firstIndex(of: .contentType) else { return false }
        let (value, multipart) = (fields.value(at: line), Array("multipart/byteranges".utf8))
        return value.count >= multipart.count && value.extracting(0..<multipart.count).isEqualIgnoringCase(to: multipart.span)
    }

    /// Whether it is of the same representation as what is stored (RFC 9111 §3.4).
    public func belongs(to content: PartialContent, fields: FieldView, stored: FieldView) -> Bool {
        var both = content
        return PartialContent.mayCombine(stored, fields) && both.add(PartialContent(range, of: length))
    }
}
