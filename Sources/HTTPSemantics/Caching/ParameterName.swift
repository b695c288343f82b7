import Bytes

/// The name of a query's parameter, or of a cookie, as the most lenient origin may read it: equal for two that some
/// origin may take for the same.
///
/// A key that leaves out what the origin looks at would let one client choose the page of another. Names are decoded
/// as those of forms (`pa%67e`), compared without case, as ASP.NET does, and folded as by PHP: they end before `[` and
/// before a zero, spaces in front are dropped, and other spaces and dots count as `_`.
struct ParameterName: Equatable {
    private let bytes: ByteSlice

    /// - Parameter parameter: with its value, if it has one.
    init(of parameter: Span<UInt8>) {
        self.init(parameter.extracting(0..<(parameter.firstIndex(of: UInt8(ascii: "=")) ?? parameter.count)))
    }

    init(_ name: Span<UInt8>) {
        let folded = ByteBuffer(capacity: 32)
        var index = 0
        while index < name.count {
            var byte = name[index]
            if byte == UInt8(ascii: "%"), index + 2 < name.count, let high = name[index + 1].hexadecimalValue,
                let low = name[index + 2].hexadecimalValue
            {
                byte = high << 4 | low
                index += 2
            }
            index += 1
            switch byte {
            case 0: index = name.count
            case UInt8(ascii: "["):
                // At its very beginning it is a letter like any other.
                if folded.isEmpty { folded.append(UInt8(ascii: "_")) } else { index = name.count }
            case UInt8(ascii: " "), UInt8(ascii: "+"):
                if !folded.isEmpty { folded.append(UInt8(ascii: "_")) }
            case UInt8(ascii: "."): folded.append(UInt8(ascii: "_"))
            default: folded.append(byte.lowercasedASCII)
            }
        }
        bytes = folded.copied()
    }

    /// By bytes.
    func precedes(_ other: ParameterName) -> Bool { bytes.precedes(other.bytes) }
}
