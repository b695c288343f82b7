public import Bytes

/// The escaping of texts in a combined line, as in nginx: `"`, `\`, and all bytes outside printable ASCII become
/// `\xHH`.
enum Escaping {
    /// No byte of the texts needs escaping.
    case none
    /// Bytes below this one are not printable.
    case belowAndOthers(UInt8)

    /// For a text that a quote ends.
    static let quotable: UInt8 = 0x20
    /// For a text that a space ends.
    static let word: UInt8 = 0x21

    @inline(__always)
    init(for bytes: Span<UInt8>, printableFrom first: UInt8) {
        self = bytes.firstIndexOutsideQuotes(from: 0, printableFrom: first) == nil ? .none : .belowAndOthers(first)
    }
}

/// Escapes bytes from outside, so that no byte can end a line, a quoted part or a JSON string, or control a terminal.
/// Nearly all texts need no escaping, as one scan shows; they are copied whole.
extension ByteBuffer {
    /// Appends a text of a combined line; an empty text as `-`.
    @inline(__always) // A call would save seven registers for the rare case.
    func append(_ bytes: Span<UInt8>, _ escaping: Escaping) {
        if bytes.isEmpty { return append(UInt8(ascii: "-")) }
        switch escaping {
        case .none: append(bytes)
        case .belowAndOthers(let first): append(escaping: bytes, printableFrom: first)
        }
    }

    @inline(never)
    private func append(escaping bytes: Span<UInt8>, printableFrom first: UInt8) {
        var plainStart = 0
        while let index = bytes.firstIndexOutsideQuotes(from: plainStart, printableFrom: first) {
            append(bytes.extracting(plainStart..<index))
            append("\\x")
            append(hex: bytes[index])
            plainStart = index + 1
        }
        append(bytes.extracting(plainStart..<bytes.count))
    }

    /// Appends a JSON string with its quotes (RFC 8259 §7). Valid UTF-8 stays as it is. A byte ≥ 0x80 that belongs to
    /// no valid sequence becomes `\u00XX`, so that the result is always valid JSON.
    public func append(jsonString bytes: Span<UInt8>) {
        append(UInt8(ascii: "\""))
        if bytes.firstIndexOutsideQuotes(from: 0, printableFrom: 0x20) == nil {
            append(bytes)
        } else {
            append(jsonEscaping: bytes)
        }
        append(UInt8(ascii: "\""))
    }

    private func append(jsonEscaping bytes: Span<UInt8>) {
        var plainStart = 0
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            let length = utf8Length(of: bytes, at: index)
            defer { index += Swift.max(1, length) }
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), ..<0x20, 0x7F: break
            default: if length > 0 { continue }
            }
            append(bytes.extracting(plainStart..<index))
            plainStart = index + 1
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
                append(UInt8(ascii: "\\"))
                append(byte)
            } else {
                append("\\u00")
                append(hex: byte)
            }
        }
        append(bytes.extracting(plainStart..<bytes.count))
    }

    /// Two lower-case hexadecimal digits.
    private func append(hex byte: UInt8) {
        if byte < 0x10 { append(UInt8(ascii: "0")) }
        append(hexadecimal: UInt64(byte))
    }
}

/// How many bytes the well-formed UTF-8 sequence at `index` has (RFC 3629 §4); 0 if there is no such sequence.
func utf8Length(of bytes: Span<UInt8>, at index: Int) -> Int {
    let (length, second): (Int, ClosedRange<UInt8>)
    switch bytes[index] {
    case 0x00...0x7F: return 1
    case 0xC2...0xDF: (length, second) = (2, 0x80...0xBF)
    case 0xE0: (length, second) = (3, 0xA0...0xBF) // no overlong forms
    case 0xED: (length, second) = (3, 0x80...0x9F) // no surrogates
    case 0xE1...0xEF: (length, second) = (3, 0x80...0xBF)
    case 0xF0: (length, second) = (4, 0x90...0xBF) // no overlong forms
    case 0xF1...0xF3: (length, second) = (4, 0x80...0xBF)
    case 0xF4: (length, second) = (4, 0x80...0x8F) // nothing above U+10FFFF
    default: return 0
    }
    guard index + length <= bytes.count, second.contains(bytes[index + 1]) else { return 0 }
    for position in index + 2..<index + length where bytes[position] & 0xC0 != 0x80 { return 0 }
    return length
}
