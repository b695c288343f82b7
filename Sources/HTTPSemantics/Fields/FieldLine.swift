/// A stretch of a message's bytes, counted from the start of its head.
public struct ByteRange: Sendable, Hashable, BitwiseCopyable {
    /// Offsets in bytes, the second after the last byte.
    public let lower: UInt32
    public let upper: UInt32

    /// - Parameter range: offsets below 4 GiB, as those of all heads are.
    @inlinable
    public init(_ range: Range<Int>) {
        lower = UInt32(truncatingIfNeeded: range.lowerBound)
        upper = UInt32(truncatingIfNeeded: range.upperBound)
    }

    /// Bytes.
    @inlinable public var count: Int { Int(upper &- lower) }
    @inlinable public var range: Range<Int> { Int(lower)..<Int(upper) }
}

/// One field line of a head (RFC 9110 §5): where its name and its value stand, and which known field it is.
/// The value is without the white space around it.
public struct FieldLine: Sendable, BitwiseCopyable {
    /// Where its name stands, without the colon, and its value.
    public let name: ByteRange
    public let value: ByteRange
    /// `.other` for a name that the proxy does not act on.
    public let field: KnownField

    @inlinable
    public init(name: ByteRange, value: ByteRange, field: KnownField) {
        self.name = name
        self.value = value
        self.field = field
    }
}
