import Bytes

/// The content codings that an `Accept-Encoding` accepts, if it accepts only common ones (RFC 9110 §12.5.3).
struct CodingSet: OptionSet, Equatable {
    let rawValue: UInt8

    static let gzip = Self(rawValue: 1), br = Self(rawValue: 2), zstd = Self(rawValue: 4), deflate = Self(rawValue: 8)
    static let noIdentity = Self(rawValue: 16)

    init(rawValue: UInt8) { self.rawValue = rawValue }

    /// `nil` if the field holds more than a set of the common codings can express: a client with another field value
    /// might get a coding that it cannot decode. `*` is such a case: beside it, refused codings matter too.
    init?(acceptedBy fields: FieldView) {
        self = []
        var members = ListIterator(fields, .acceptEncoding)
        while let member = members.next() {
            let end = member.firstIndex(of: UInt8(ascii: ";")) ?? member.count
            let name = member.extracting(0..<end).trimmingOptionalWhitespace()
            guard !name.isEqual(to: "*"),
                let isRefused = end < member.count ? Self.isZero(member.extracting((end + 1)...)) : false
            else { return nil }
            let coding = Self(naming: name)
            // `identity` is acceptable unless refused.
            if coding == .noIdentity ? isRefused : !isRefused {
                if coding.isEmpty { return nil }
                insert(coding)
            }
        }
    }

    private init(naming name: Span<UInt8>) {
        if name.isEqualIgnoringCase(to: "gzip") || name.isEqualIgnoringCase(to: "x-gzip") {
            self = .gzip
        } else if name.isEqualIgnoringCase(to: "br") {
            self = .br
        } else if name.isEqualIgnoringCase(to: "zstd") {
            self = .zstd
        } else if name.isEqualIgnoringCase(to: "deflate") {
            self = .deflate
        } else if name.isEqualIgnoringCase(to: "identity") {
            self = .noIdentity
        } else {
            self = []
        }
    }

    /// Whether a weight is `q=0`, `q=0.000`: not acceptable (RFC 9110 §12.4.2). `nil` if `text` is no weight.
    static func isZero(_ text: Span<UInt8>) -> Bool? {
        let weight = text.trimmingOptionalWhitespace()
        guard weight.count >= 3, weight[0].lowercasedASCII == UInt8(ascii: "q"), weight[1] == UInt8(ascii: "=") else {
            return nil
        }
        var isZero = true
        for index in 2..<weight.count where weight[index] != UInt8(ascii: ".") {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(weight[index]) else { return nil }
            if weight[index] != UInt8(ascii: "0") { isZero = false }
        }
        return isZero
    }

    /// Removes the lowest coding and returns it as a byte that cannot occur in a field value.
    mutating func popByte() -> UInt8? {
        guard !isEmpty else { return nil }
        let lowest = rawValue.trailingZeroBitCount
        remove(Self(rawValue: 1 << UInt8(lowest)))
        return 0x10 + UInt8(lowest)
    }
}
