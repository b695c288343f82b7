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

    /// Whether text from the engine has the form of a token: it goes into names of keys and into requests.
    package static func isToken(_ text: Span<UInt8>) -> Bool {
        guard (1...64).contains(text.count) else { return false }
        for index in 0..<text.count {
            switch text[index] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                break
            default: return false
            }
        }
        return true
    }
}
