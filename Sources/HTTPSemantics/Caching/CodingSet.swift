import Bytes

/// The content codings that an `Accept-Encoding` accepts, if it accepts no others than the common ones (RFC 9110 §12.5.3).
struct CodingSet: OptionSet, Equatable {
    let rawValue: UInt8

    static let gzip = Self(rawValue: 1), br = Self(rawValue: 2), zstd = Self(rawValue: 4), deflate = Self(rawValue: 8)
    static let any = Self(rawValue: 16), noIdentity = Self(rawValue: 32)

    init(rawValue: UInt8) { self.rawValue = rawValue }

    /// `nil` where more is said than a set of the common ones can hold: a client that does not say the same might get what it cannot read.
    init?(acceptedBy fields: FieldView) {
        self = []
        var members = ListIterator(fields, .acceptEncoding)
        while let member = members.next() {
            let end = member.firstIndex(of: UInt8(ascii: ";")) ?? member.count
            let coding = Self(naming: member.extracting(0..<end).trimmingOptionalWhitespace())
            let isRefused = end < member.count && Self.isZeroWeight(member.extracting((end + 1)...))
            // `identity` is acceptable unless refused.
            if coding == .noIdentity ? isRefused : !isRefused {
                if coding.isEmpty { return nil }
                insert(coding)
            } else if coding == .any {
                return nil
            }
        }
    }

    private init(naming name: Span<UInt8>) {
        if name.isEqualIgnoringCase(to: "gzip") || name.isEqualIgnoringCase(to: "x-gzip") { self = .gzip
        } else if name.isEqualIgnoringCase(to: "br") { self = .br
        } else if name.isEqualIgnoringCase(to: "zstd") { self = .zstd
        } else if name.isEqualIgnoringCase(to: "deflate") { self = .deflate
        } else if name.isEqual(to: "*") { self = .any
        } else if name.isEqualIgnoringCase(to: "identity") { self = .noIdentity
        } else { self = [] }
    }

    /// `;q=0`, `;q=0.000`: not acceptable (RFC 9110 §12.4.2).
    private static func isZeroWeight(_ parameters: Span<UInt8>) -> Bool {
        let text = parameters.trimmingOptionalWhitespace()
        guard text.count >= 3, text[0].lowercasedASCII == UInt8(ascii: "q"), text[1] == UInt8(ascii: "=") else { return false }
        for index in 2..<text.count where text[index] != UInt8(ascii: "0") && text[index] != UInt8(ascii: ".") { return false }
        return true
    }

    /// Takes the next coding out, as a byte that stands in no field value.
    mutating func popByte() -> UInt8? {
        guard !isEmpty else { return nil }
        let lowest = rawValue.trailingZeroBitCount
        remove(Self(rawValue: 1 << UInt8(lowest)))
        return 0x10 + UInt8(lowest)
    }
}
