import Bytes

/// The name of a query's parameter, or of a cookie, as the most lenient origin may read it, one byte at a time: equal for
/// two that some origin may take for the same.
///
/// A key that leaves out what the origin looks at would let one client choose the page of another. Names are decoded
/// as those of forms (`pa%67e`), compared without case, as ASP.NET does, and folded as by PHP: they end before the `[` of
/// an index and before a zero, spaces in front are dropped, and other spaces and dots count as `_`.
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

    /// Whether origins agree on where it ends, so far as they agree at all. Not on brackets that are no index behind a
    /// name (PHP, Rack and qs each make something else of `a[b`, `[a]` and `a]`), nor on `%u0061`.
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

    /// Whether both may be the same to some origin.
    static func mayBeSame(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        var (first, second) = (LenientName(left), LenientName(right))
        while true {
            let (one, other) = (first.next(), second.next())
            if one != other { return false }
            if one == nil { return true }
        }
    }

    /// Whether `name` may begin with `start` to some origin.
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
