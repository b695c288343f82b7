import Bytes

/// The result of applying a request's `Range` to a representation. Ranges are half open.
public enum RangeSelection: Sendable, Equatable {
    /// 200 with the whole representation: `Range` is absent or ignored.
    case whole
    /// 206 with `Content-Range`.
    case single(Range<Int>)
    /// 206 with `multipart/byteranges`, in the requested order.
    case multiple([Range<Int>])
    /// 416 with `Content-Range: bytes */length`.
    case unsatisfiable
}

/// The `Range` of a GET request (RFC 9110 §14.2).
public struct RangeRequest: Sendable, Equatable {
    /// The ranges in the requested order; at least one.
    public let specs: [ByteRangeSpec]

    /// A `Range` with more ranges than this is ignored: §14.2 calls such a request a sign of a broken client or an
    /// attack.
    public static let maxSpecs = 32
    /// Two parts with a smaller gap than this cost more than one part that includes the gap (RFC 9110 §15.3.7.2).
    static let overhead = 80

    /// `nil` if there is no `Range`, the method is not GET, or the field is ignored: another unit, more than one line,
    /// invalid syntax, too many ranges.
    public init?(_ fields: FieldView, method: Method) {
        guard method == .get, let value = fields.onlyValue(of: .range) else { return nil }
        self.init(value)
    }

    init?(_ value: Span<UInt8>) {
        guard let set = Self.set(value) else { return nil }
        var specs: [ByteRangeSpec] = []
        var members = MemberIterator(set)
        while let member = members.next() {
            guard specs.count < Self.maxSpecs, let spec = Self.spec(member) else { return nil }
            specs.append(spec)
        }
        guard !specs.isEmpty else { return nil }
        self.specs = specs
    }

    /// The range of a GET with exactly one satisfiable range in a representation of `length` bytes, as in nearly every
    /// request with `Range`. `nil` for any other request. Does not allocate.
    public static func single(_ fields: FieldView, length: Int) -> Range<Int>? {
        guard let value = fields.onlyValue(of: .range), let set = set(value), let spec = spec(set) else { return nil }
        return spec.range(in: length)
    }

    /// The range of a GET that may be forwarded when no part is stored: exactly one range, and no `If-Range`, whose
    /// result is unknown before the response arrives.
    public static func only(_ fields: FieldView, method: Method) -> ByteRangeSpec? {
        guard !fields.contains(.ifRange), let range = RangeRequest(fields, method: method), range.specs.count == 1
        else { return nil }
        return range.specs[0]
    }

    /// The text after `bytes=`; `nil` for another unit.
    @_lifetime(copy value)
    private static func set(_ value: Span<UInt8>) -> Span<UInt8>? {
        guard value.count > 6, value.hasPrefixIgnoringCase("bytes=") else { return nil }
        return value.extracting(6...)
    }

    private static func spec(_ text: Span<UInt8>) -> ByteRangeSpec? {
        guard let dash = text.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let (left, right) = (text.extracting(0..<dash), text.extracting((dash + 1)...))
        if left.isEmpty { return position(right).map(ByteRangeSpec.last) }
        guard let first = position(left) else { return nil }
        if right.isEmpty { return .from(first) }
        guard let last = position(right), first <= last else { return nil }
        return .between(first, last)
    }

    /// Digits, saturating: RFC 9110 §14.1.2 requires protection against overflow.
    static func position(_ text: Span<UInt8>) -> Int? {
        text.decimal(saturatingAt: UInt64(Int.max - 1)).map { Int($0) }
    }

    /// The requested ranges of a representation of `length` bytes.
    public func resolve(length: Int) -> RangeSelection {
        // §14.2: for a representation without content, Range may be ignored; no other response makes sense.
        guard length > 0 else { return .whole }
        let ranges = specs.compactMap { $0.range(in: length) }
        guard let first = ranges.first else { return .unsatisfiable }
        if ranges.count == 1 { return .single(first) }
        guard let parts = Self.coalesced(ranges) else { return .whole }
        return parts.count == 1 ? .single(parts[0]) : .multiple(parts)
    }

    /// Joins ranges that overlap or are close; each part stands at the position of its first spec (§15.3.7.2). `nil` if
    /// more than two ranges overlap, which §14.2 permits ignoring.
    private static func coalesced(_ ranges: [Range<Int>]) -> [Range<Int>]? {
        var parts: [Range<Int>] = []
        var overlaps = 0
        for range in ranges {
            var joined = range
            var place = parts.count
            // A difference of two positions, unlike a sum, does not overflow for any length that the origin states.
            for (index, part) in parts.enumerated().reversed()
            where joined.lowerBound - part.upperBound <= overhead && part.lowerBound - joined.upperBound <= overhead {
                if joined.overlaps(part) { overlaps += 1 }
                joined = min(joined.lowerBound, part.lowerBound)..<max(joined.upperBound, part.upperBound)
                parts.remove(at: index)
                place = index
            }
            parts.insert(joined, at: place)
        }
        return overlaps > 2 ? nil : parts
    }
}

/// `If-Range` (RFC 9110 §13.1.5): decides between the range and the whole representation.
public enum RangeCondition {
    /// True if there is no `If-Range`.
    public static func holds(_ request: FieldView, stored: FieldView, facts: ResponseFacts) -> Bool {
        guard request.contains(.ifRange) else { return true }
        guard let value = request.onlyValue(of: .ifRange) else { return false }
        if let tag = EntityTag(value) {
            guard let own = stored.entityTag else { return false }
            return tag.isStronglyEqual(to: own)
        }
        // An exact match, and only of a date that is strong in the sense of §8.8.2.2: a second before `Date`.
        guard let date = HTTPDate.parse(value, now: facts.responseTime.wall), facts.contains(.hasLastModified) else {
            return false
        }
        return date == facts.lastModified && stored.contains(.date) && facts.date > facts.lastModified
    }
}
