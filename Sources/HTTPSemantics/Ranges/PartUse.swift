/// How stored parts of a representation may be used for one GET (RFC 9111 §3.3).
public enum PartUse: Sendable, Equatable {
    /// All requested bytes are stored, or the range is known to be unsatisfiable: send the response, once fresh.
    case answers
    /// Fetch this range first: it spans all missing bytes.
    case needs(ByteRangeSpec)
    /// Several ranges, of which some are missing: treat the request as if no part were stored.
    case nothing

    /// - Parameters:
    ///   - request: the fields of a GET.
    ///   - content: the parts that are stored.
    ///   - stored: the fields of the stored response, with `facts`.
    ///   - maxRanges: a request with more ranges gets the whole representation.
    public init(
        _ request: FieldView, of content: PartialContent, stored: FieldView, facts: ResponseFacts, maxRanges: Int
    ) {
        guard let range = RangeRequest(request, method: .get), range.specs.count <= maxRanges,
            RangeCondition.holds(request, stored: stored, facts: facts)
        else {
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
        self =
            last.upperBound >= content.length ?? .max
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
