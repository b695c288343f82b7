/// Which bytes of one representation are stored, and what a new part adds (RFC 9111 §3.3, §3.4; RFC 9110 §15.3.7.3).
///
/// The ranges are half open, sorted and apart from each other.
public struct PartialContent: Sendable, Equatable {
    /// Half open, in order, with a gap between any two.
    public private(set) var ranges: [Range<Int>]
    /// The length of the whole representation; `nil` while no part has said it.
    public private(set) var length: Int?

    /// - Parameters:
    ///   - range: offsets of the bytes that are there.
    ///   - length: of the whole in bytes, if it is known.
    public init(_ range: Range<Int>, of length: Int?) {
        ranges = range.isEmpty ? [] : [range]
        self.length = length
    }

    /// Of runs that are apart from each other or touch, in order.
    public init(_ runs: [Range<Int>], of length: Int?) {
        self.init(0..<0, of: length)
        for run in runs where !run.isEmpty { insert(run) }
    }

    /// Whether the whole is there, so that it is to be treated as a complete 200.
    public var isComplete: Bool { length.map { contains(0..<$0) } ?? false }

    /// Whether all of `range` is stored: only then may it be used to answer for it (§3.3).
    public func contains(_ range: Range<Int>) -> Bool {
        range.isEmpty || ranges.contains { $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound }
    }

    /// What has to be fetched before `range` can be answered.
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

    /// Adds another part of the same representation. False, and nothing changed, if the lengths contradict each other.
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

    /// Whether two responses are parts of one representation: they share a strong entity tag (§3.4). Dates are never
    /// enough here; two versions of one second would be mixed.
    public static func mayCombine(_ stored: FieldView, _ new: FieldView) -> Bool {
        guard let left = stored.entityTag, let right = new.entityTag else { return false }
        return left.isStronglyEqual(to: right)
    }
}
