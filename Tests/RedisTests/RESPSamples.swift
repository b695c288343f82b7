import Bytes
import Repeatable

@testable import Redis

/// A text with one byte a character, so that tables can name any byte.
func wire(_ text: String) -> [UInt8] { text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } }

/// The values of `bytes` in words, and the error that ends them.
/// - Parameter cuts: how many bytes are there at each call; at the end all of them are.
func values(of bytes: [UInt8], cuts: [Int] = [], limits: RESPLimits = RESPLimits()) -> String {
    var parser = RESPParser(limits: limits)
    let input = ByteBuffer(capacity: 16)
    var (there, found): (Int, [String]) = (0, [])
    for cut in cuts.sorted() + [bytes.count] {
        for index in there..<cut { input.append(bytes[index]) }
        there = cut
        do throws(RESPSyntaxError) {
            while let value = try parser.next(in: input) { found.append("\(value)") }
        } catch {
            found.append("error at \(error.position): \(error.reason)")
            break
        }
    }
    return found.joined(separator: "; ")
}

extension RESPValue: CustomStringConvertible {
    public var description: String {
        switch self {
        case .simple(let text): "+\(String(text))"
        case .error(let text): "-\(String(text))"
        case .integer(let number): "\(number)"
        case .bulk(let text): "\"\(String(text))\""
        case .null: "null"
        case .boolean(let isTrue): "\(isTrue)"
        case .double(let text): "double \(String(text))"
        case .bigNumber(let text): "big \(String(text))"
        case .verbatim(let text): "verbatim \"\(String(text))\""
        case .array(let values): "[\(Self.list(values))]"
        case .set(let values): "set[\(Self.list(values))]"
        case .map(let values): "map[\(Self.list(values))]"
        case .push(let values): "push[\(Self.list(values))]"
        }
    }

    private static func list(_ values: [RESPValue]) -> String { values.map(\.description).joined(separator: " ") }

    /// The bytes that an engine sends for the value.
    var encoded: [UInt8] {
        switch self {
        case .simple(let text): Self.line("+", text)
        case .error(let text): Self.line("-", text)
        case .integer(let number): wire(":\(number)\r\n")
        case .bulk(let text): wire("$\(text.count)\r\n") + Self.bytes(of: text) + wire("\r\n")
        case .null: wire("_\r\n")
        case .boolean(let isTrue): wire(isTrue ? "#t\r\n" : "#f\r\n")
        case .double(let text): Self.line(",", text)
        case .bigNumber(let text): Self.line("(", text)
        case .verbatim(let text): wire("=\(text.count + 4)\r\ntxt:") + Self.bytes(of: text) + wire("\r\n")
        case .array(let values): wire("*\(values.count)\r\n") + values.flatMap(\.encoded)
        case .set(let values): wire("~\(values.count)\r\n") + values.flatMap(\.encoded)
        case .map(let values): wire("%\(values.count / 2)\r\n") + values.flatMap(\.encoded)
        case .push(let values): wire(">\(values.count)\r\n") + values.flatMap(\.encoded)
        }
    }

    private static func line(_ type: String, _ text: ByteSlice) -> [UInt8] {
        wire(type) + bytes(of: text) + wire("\r\n")
    }

    private static func bytes(of text: ByteSlice) -> [UInt8] {
        let span = text.span
        return span.indices.map { span[$0] }
    }

    /// A value of any kind.
    static func random(depth: Int, using generator: inout SeededGenerator) -> RESPValue {
        func text(_ alphabet: ClosedRange<UInt8>, most: Int) -> ByteSlice {
            let buffer = ByteBuffer(capacity: 16)
            for _ in 0..<Int.random(in: 0...most, using: &generator) {
                buffer.append(UInt8.random(in: alphabet, using: &generator))
            }
            return buffer.copied()
        }
        switch Int.random(in: 0..<(depth > 0 ? 12 : 9), using: &generator) {
        case 0: return .simple(text(0x20...0x7e, most: 12))
        case 1: return .error(text(0x20...0x7e, most: 12))
        case 2: return .integer(.random(in: .min ... .max, using: &generator))
        case 3: return .null
        case 4: return .boolean(.random(using: &generator))
        case 5: return .double(ByteSlice("\(Int.random(in: -99...99, using: &generator)).5e-3"))
        case 6: return .bigNumber(ByteSlice("-349523409523475093485730948573094857"))
        case 7: return .verbatim(text(0...255, most: 20))
        case 8: return .bulk(text(0...255, most: 40))
        default:
            let count = Int.random(in: 0...4, using: &generator)
            let values = (0..<count).map { _ in random(depth: depth - 1, using: &generator) }
            switch Int.random(in: 0..<3, using: &generator) {
            case 0: return .array(values)
            case 1: return .set(values)
            default: return .map(values + values)
            }
        }
    }
}
