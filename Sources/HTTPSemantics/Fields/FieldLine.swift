/// A range of a message's bytes, counted from the start of its head.
public struct ByteRange: Sendable, Hashable, BitwiseCopyable {
    /// Offsets in bytes; `upper` is the offset after the last byte.
    public let lower: UInt32
    public let upper: UInt32

    /// - Parameter range: offsets below 4 GiB; the limits on heads ensure this.
    @inlinable
    public init(_ range: Range<Int>) {
        lower = UInt32(truncatingIfNeeded: range.lowerBound)
        upper = UInt32(truncatingIfNeeded: range.upperBound)
    }

    /// Bytes.
    @inlinable public var count: Int { Int(upper &- lower) }
    @inlinable public var range: Range<Int> { Int(lower)..<Int(upper) }
}

/// One field line of a head (RFC 9110 §5): the ranges of its name and value, and its known field. The value excludes
/// the white space around it.
public struct FieldLine: Sendable, BitwiseCopyable {
    /// The ranges of the name, without the colon, and of the value.
    public let name: ByteRange
    public let value: ByteRange
    /// `.other` for a name that has no case in `KnownField`.
    public let field: KnownField

    @inlinable
    public init(name: ByteRange, value: ByteRange, field: KnownField) {
        self.name = name
        self.value = value
        self.field = field
    }
}
