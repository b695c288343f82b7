public import Bytes

/// An identifier that this proxy makes for a request that has none of its own. Another request gets the same one only
/// by an extremely unlikely coincidence.
public struct RequestID: Sendable, BitwiseCopyable {
    fileprivate let high: UInt64
    fileprivate let low: UInt64

    /// The identifier whose first and last digits are these numbers.
    public init(_ high: UInt64, _ low: UInt64) { (self.high, self.low) = (high, low) }

    /// None was made.
    public static let none = RequestID(0, 0)
    public var isNone: Bool { high | low == 0 }
}

extension ByteBuffer {
    /// Appends the identifier in 32 hexadecimal digits.
    public func append(_ id: RequestID) {
        append(hexadecimal: id.high, width: 16)
        append(hexadecimal: id.low, width: 16)
    }
}
