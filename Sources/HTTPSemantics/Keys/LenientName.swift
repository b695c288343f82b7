import Bytes

/// The name of a query's parameter, or of a cookie, as the most lenient origin may read it, one byte at a time: equal
/// for two names that some origin may treat as the same.
///
/// If a key omitted a parameter that the origin uses, one client could choose the page of another. Names are decoded
/// like form names (`pa%67e`), compared without case, as in ASP.NET, and normalized as in PHP: a name ends before the
/// `[` of an index and before a zero, leading spaces are dropped, and other spaces and dots count as `_`.
struct LenientName: ~Escapable {
    private let name: Span<UInt8>
    private var index = 0
    private var hasBegun = false

    @_lifetime(copy name)
    init(_ name: Span<UInt8>) { self.name = name }

    mutating func next() -> UInt8? {
        while let byte = Self.decoded(name, &index) {
            switch byte {
            case 0, UInt8(ascii: "["):
                index = name.count
            case UInt8(ascii: " "), UInt8(ascii: "+"):
                if hasBegun { return UInt8(ascii: "_") }
            default:
                hasBegun = true
                return byte == UInt8(ascii: ".") ? UInt8(ascii: "_") : byte.lowercasedASCII
            }
        }
        return nil
    }

    /// Whether all origins find the same end of the name, apart from the differences that this type ignores. False for
    /// brackets other than an index after a name (PHP, Rack and qs each read `a[b`, `[a]` and `a]` differently), and
    /// for `%u0061`.
    static func isCertain(_ name: Span<UInt8>) -> Bool {
        var (index, hasName, isOpen) = (0, false, false)
        while index < name.count {
            let isEscape = name[index] == UInt8(ascii: "%")
            if isEscape, index + 1 < name.count, name[index + 1].lowercasedASCII == UInt8(ascii: "u") { return false }
            guard let byte = decoded(name, &index) else { break }
            switch byte {
            case UInt8(ascii: "["):
                guard hasName, !isOpen else { return false }
                isOpen = true
            case UInt8(ascii: "]"):
                guard isOpen else { return false }
                isOpen = false
            default:
                hasName = true
            }
        }
        return !isOpen
    }

    /// Whether some origin may treat both names as the same.
    static func mayBeSame(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        var (first, second) = (LenientName(left), LenientName(right))
        while true {
            let (one, other) = (first.next(), second.next())
            if one != other { return false }
            if one == nil { return true }
        }
    }

    /// Whether some origin may read `name` as beginning with `start`.
    static func mayBegin(_ name: Span<UInt8>, with start: Span<UInt8>) -> Bool {
        var (whole, first) = (LenientName(name), LenientName(start))
        while let byte = first.next() {
            if whole.next() != byte { return false }
        }
        return true
    }

    private static func decoded(_ name: Span<UInt8>, _ index: inout Int) -> UInt8? {
        guard index < name.count else { return nil }
        let byte = name[index]
        index += 1
        guard byte == UInt8(ascii: "%"), index + 1 < name.count, let high = name[index].hexadecimalValue,
            let low = name[index + 1].hexadecimalValue
        else { return byte }
        index += 2
        return high << 4 | low
    }
}
