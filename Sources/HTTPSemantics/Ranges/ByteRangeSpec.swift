public import Bytes

/// One `range-spec` of `Range: bytes=…` (RFC 9110 §14.1.2). Positions above `Int.max` are clamped to `Int.max`.
public enum ByteRangeSpec: Sendable, Hashable {
    /// `first-`
    case from(Int)
    /// `first-last`, both inclusive
    case between(Int, Int)
    /// `-count`
    case last(Int)
}

extension ByteRangeSpec {
    /// The bytes that this spec selects of a representation of `length`; `nil` if it selects none.
    func range(in length: Int) -> Range<Int>? {
        switch self {
        case .from(let first) where first < length: first..<length
        case .between(let first, let last) where first < length: first..<min(last, length - 1) + 1
        case .last(let count) where count > 0 && length > 0: max(0, length - count)..<length
        case .from, .between, .last: nil
        }
    }

    /// Whether all bytes that `other` selects are among the first `length` bytes that this spec selects, for every
    /// length of the representation.
    public func begins(with other: ByteRangeSpec, inFirst length: Int) -> Bool {
        guard let (first, last) = bounds, let (otherFirst, otherLast) = other.bounds else { return false }
        return first <= otherFirst && otherLast <= last && otherLast - first < length
    }

    /// Whether the spec certainly starts within the first `length` bytes of a representation, for every length of the
    /// representation.
    public func begins(inFirst length: Int) -> Bool { bounds.map { $0.first < length } ?? false }

    /// The first and the last position, if they do not depend on the length of the representation.
    private var bounds: (first: Int, last: Int)? {
        switch self {
        case .from(let first): (first, .max)
        case .between(let first, let last): (first, last)
        case .last: nil
        }
    }

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

    /// Whether a part with `range` of `length` bytes contains all bytes that this spec selects (RFC 9110 §15.3.7: a
    /// server may send less, or more).
    func isAnswered(by range: Range<Int>, of length: Int?) -> Bool {
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
