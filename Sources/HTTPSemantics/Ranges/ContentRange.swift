public import Bytes

/// `Content-Range: bytes …` (RFC 9110 §14.4). Ranges are half open.
public enum ContentRange: Sendable, Equatable {
    /// The complete length is `nil` if the sender does not know it.
    case part(Range<Int>, of: Int?)
    case unsatisfied(length: Int)

    /// `nil` for another unit, invalid syntax, or a range outside of its length. The caller treats the field as not
    /// understood, so that the part is not combined.
    public init?(_ value: Span<UInt8>) {
        guard value.hasPrefixIgnoringCase("bytes "), let slash = value.firstIndex(of: UInt8(ascii: "/")) else {
            return nil
        }
        let (range, whole) = (value.extracting(6..<slash), value.extracting((slash + 1)...))
        let isUnknown = whole.isEqual(to: "*")
        let length = Self.number(whole)
        guard isUnknown || length != nil else { return nil }
        if range.isEqual(to: "*") {
            guard let length else { return nil }
            self = .unsatisfied(length: length)
            return
        }
        guard let dash = range.firstIndex(of: UInt8(ascii: "-")),
            let first = Self.number(range.extracting(0..<dash)),
            let last = Self.number(range.extracting((dash + 1)...)),
            first <= last, last < length ?? .max
        else { return nil }
        self = .part(first..<last + 1, of: length)
    }

    /// Digits. A position in `Range` may lie anywhere after the end, but each number here identifies bytes of the
    /// content: a number that is too large is invalid.
    private static func number(_ text: Span<UInt8>) -> Int? {
        text.decimal(saturatingAt: 1 << 63).flatMap { Int(exactly: $0) }
    }

    /// Reads the only `Content-Range` line of a message; `nil` if there is not exactly one, or if `init(_ value:)`
    /// fails.
    public init?(_ fields: FieldView) {
        guard let value = fields.onlyValue(of: .contentRange) else { return nil }
        self.init(value)
    }

    /// Appends the field value.
    public func write(to buffer: ByteBuffer) {
        buffer.append("bytes ")
        switch self {
        case .part(let range, let length):
            buffer.append(decimal: range.lowerBound)
            buffer.append("-")
            buffer.append(decimal: range.upperBound - 1)
            buffer.append("/")
            if let length { buffer.append(decimal: length) } else { buffer.append("*") }
        case .unsatisfied(let length):
            buffer.append("*/")
            buffer.append(decimal: length)
        }
    }
}
