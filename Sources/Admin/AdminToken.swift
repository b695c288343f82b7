package import Bytes

/// The secret that a request to the admin listener must have in `Authorization: Bearer` (RFC 6750 §2.1).
package struct AdminToken: Sendable, Equatable {
    private static let fewestBytes = 16

    /// The token without the white space around it.
    package let text: String

    /// - Parameter content: of the token's file.
    package init(_ content: ByteSlice) {
        text = String(content).split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    /// Why `content` is no token, with a remedy; `nil` if it is one.
    package static func mistake(in content: ByteSlice) -> String? {
        let token = AdminToken(content).text.utf8
        if token.count < fewestBytes {
            return
                "the token in it has \(token.count) characters; give it \(fewestBytes) or more, as `openssl rand -hex 32` does"
        }
        // `b68token` of RFC 6750 §2.1.
        let isToken = token.allSatisfy {
            ($0 | 0x20) >= UInt8(ascii: "a") && ($0 | 0x20) <= UInt8(ascii: "z")
                || $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") || "-._~+/=".utf8.contains($0)
        }
        return isToken ? nil : "the token in it may have letters, digits and `-._~+/=` only; write another one"
    }

    /// Whether a field value is `Bearer` with this token. Takes a time that does not depend on how much of it is right.
    func isIn(_ value: Span<UInt8>) -> Bool {
        let expected = Array("Bearer \(text)".utf8)
        guard !text.isEmpty, value.count == expected.count else { return false }
        var difference: UInt8 = 0
        for index in expected.indices {
            // The scheme is compared without regard to case (RFC 9110 §11.1).
            let (one, other) = (value[index], expected[index])
            difference |= index < 6 ? (one ^ other) & ~0x20 : one ^ other
        }
        return difference == 0
    }
}
