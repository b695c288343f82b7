import Bytes

/// The stored bytes of one representation, and their combination with a new part (RFC 9111 §3.3, §3.4; RFC 9110
/// §15.3.7.3).
public struct PartialContent: Sendable, Equatable {
    /// Half open, in order, with a gap between any two.
    public private(set) var ranges: [Range<Int>]
    /// The length of the whole representation; `nil` until a part states it.
    public private(set) var length: Int?

    /// - Parameters:
    ///   - range: offsets of the stored bytes.
    ///   - length: bytes of the whole representation, if known.
    public init(_ range: Range<Int>, of length: Int?) {
        ranges = range.isEmpty ? [] : [range]
        self.length = length
    }

    /// `runs` are in order and do not overlap, but may be adjacent.
    public init(_ runs: [Range<Int>], of length: Int?) {
        self.init(0..<0, of: length)
        for run in runs where !run.isEmpty { insert(run) }
    }

    /// Whether the whole representation is stored, so that it is treated as a complete 200.
    public var isComplete: Bool { length.map { contains(0..<$0) } ?? false }

    /// Whether all of `range` is stored: only then may a response be constructed from it (§3.3).
    public func contains(_ range: Range<Int>) -> Bool {
        range.isEmpty || ranges.contains { $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound }
    }

    /// The ranges to fetch before a response with `range` is possible.
    public func missing(in range: Range<Int>) -> [Range<Int>] {
        var missing: [Range<Int>] = []
        var start = range.lowerBound
        for stored in ranges where stored.upperBound > start && stored.lowerBound < range.upperBound {
            if stored.lowerBound > start { missing.append(start..<stored.lowerBound) }
            start = stored.upperBound
        }
        if start < range.upperBound { missing.append(start..<range.upperBound) }
        return missing
    }

    /// Adds another part of the same representation. Returns false and changes no state if the lengths contradict each
    /// other.
    public mutating func add(_ other: PartialContent) -> Bool {
        if let length, let theirs = other.length, length != theirs { return false }
        let whole = length ?? other.length
        let last = (ranges + other.ranges).map(\.upperBound).max() ?? 0
        if let whole, last > whole { return false }
        length = whole
        for range in other.ranges { insert(range) }
        return true
    }

    private mutating func insert(_ range: Range<Int>) {
        var joined = range
        ranges.removeAll { stored in
            guard stored.lowerBound <= joined.upperBound, joined.lowerBound <= stored.upperBound else { return false }
            joined = min(stored.lowerBound, joined.lowerBound)..<max(stored.upperBound, joined.upperBound)
            return true
        }
        ranges.insert(joined, at: ranges.firstIndex { $0.lowerBound > joined.lowerBound } ?? ranges.endIndex)
    }

    /// Whether two responses are parts of one representation: they share a strong entity tag (§3.4). A date is never
    /// sufficient here: two versions of the same second would be mixed.
    public static func mayCombine(_ stored: FieldView, _ new: FieldView) -> Bool {
        guard let left = stored.entityTag, let right = new.entityTag else { return false }
        return left.isStronglyEqual(to: right)
    }
}

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

    static func hasSeveralParts(_ fields: FieldView) -> Bool {
        fields.firstValue(of: .contentType)?.hasPrefixIgnoringCase("multipart/byteranges") ?? false
    }

    /// Whether the part is of the same representation as the stored content (RFC 9111 §3.4).
    public func belongs(to content: PartialContent, fields: FieldView, stored: FieldView) -> Bool {
        var both = content
        return PartialContent.mayCombine(stored, fields) && both.add(PartialContent(range, of: length))
    }
}
