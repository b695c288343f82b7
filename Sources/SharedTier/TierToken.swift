package import Bytes

/// Makes the tokens with which one loop leads. No other loop, machine or start of the program has the same token. The
/// engine compares tokens for equality, and each has a stream of its own.
///
///     <22 random characters>.<number>
///
/// The leader chooses the token, so that it can release a lease although it never saw the reply.
package struct TierTokens {
    private let origin: ByteSlice
    private var count = 0

    /// - Parameter random: 128 bits from the system's generator.
    package init(random: (UInt64, UInt64) = (.random(in: .min ... .max), .random(in: .min ... .max))) {
        let text = ByteBuffer(capacity: TierHash.length)
        TierHash(random.0, random.1).append(to: text)
        origin = text.copied()
    }

    /// The next token.
    package mutating func next() -> ByteSlice {
        count += 1
        let token = ByteBuffer(capacity: origin.count + 8)
        token.append(origin)
        token.append(".")
        token.append(decimal: count)
        return token.copied()
    }
}
