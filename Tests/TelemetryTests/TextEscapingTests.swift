import Bytes
import Testing

@testable import Telemetry

@Suite struct TextEscapingTests {
    @Test(
        arguments: [
            ([], #""""#),
            (Array("plain".utf8), #""plain""#),
            (Array(#"a"b\c"#.utf8), #""a\"b\\c""#),
            ([0x00, 0x0A, 0x1F, 0x7F], #""\u0000\u000a\u001f\u007f""#),
            (Array("é€𝄞".utf8), "\"é€𝄞\""),
            ([0xE9], #""\u00e9""#), // Latin-1
            ([0xC0, 0xAF], #""\u00c0\u00af""#), // overlong
            ([0xE0, 0x80, 0xAF], #""\u00e0\u0080\u00af""#), // overlong
            ([0xED, 0xA0, 0x80], #""\u00ed\u00a0\u0080""#), // a surrogate
            ([0xF0, 0x8F, 0xBF, 0xBF], #""\u00f0\u008f\u00bf\u00bf""#), // overlong
            ([0xF4, 0x90, 0x80, 0x80], #""\u00f4\u0090\u0080\u0080""#), // above U+10FFFF
            ([0xE2, 0x82], #""\u00e2\u0082""#), // cut off
            ([0xE2, 0x82, 0x22], #""\u00e2\u0082\"""#), // cut off by a quote
            ([0xE2, 0xE2, 0x82, 0xAC], "\"\\u00e2€\""),
            ([0xFF, 0x61], #""\u00ffa""#),
        ] as [([UInt8], String)])
    func `any bytes make a valid JSON string`(bytes: [UInt8], expected: String) {
        let output = ByteBuffer(capacity: 64)
        output.append(jsonString: bytes.span)
        #expect(text(output) == expected)
        #expect(String(validating: output.span.indices.map { output.span[$0] }, as: UTF8.self) != nil)
    }

    @Test func `UTF-8 is recognised exactly as by the standard library`() {
        // Every pair of bytes behind every kind of leading byte, and whether the whole is well-formed.
        for lead in [0x41, 0x80, 0xC1, 0xC2, 0xE0, 0xE1, 0xED, 0xEE, 0xF0, 0xF1, 0xF4, 0xF5] as [UInt8] {
            for second in UInt8.min...UInt8.max {
                for tail in [[], [0x80], [0xBF], [0x80, 0xBF], [0x41, 0x80]] as [[UInt8]] {
                    let bytes = [lead, second] + tail
                    var index = 0
                    while index < bytes.count {
                        let length = utf8Length(of: bytes.span, at: index)
                        if length == 0 { break }
                        index += length
                    }
                    #expect((index == bytes.count) == (String(validating: bytes, as: UTF8.self) != nil), "\(bytes)")
                }
            }
        }
    }

    @Test(arguments: [
        ("", "-", "-"),
        ("a b", "a b", #"a\x20b"#),
        (#"a"b\c"#, #"a\x22b\x5cc"#, #"a\x22b\x5cc"#),
        ("é\n", #"\xc3\xa9\x0a"#, #"\xc3\xa9\x0a"#),
    ])
    func `a combined line quotes as nginx does`(input: String, quoted: String, word: String) {
        let bytes = Array(input.utf8)
        let output = ByteBuffer(capacity: 64)
        output.append(bytes.span, Escaping(for: bytes.span, printableFrom: Escaping.quotable))
        #expect(text(output) == quoted)
        output.removeAll()
        output.append(bytes.span, Escaping(for: bytes.span, printableFrom: Escaping.word))
        #expect(text(output) == word)
    }

    @Test func `a byte is escaped at every place`() {
        for length in 1...20 {
            for position in 0..<length {
                for byte in UInt8.min...UInt8.max {
                    var bytes = [UInt8](repeating: UInt8(ascii: "~"), count: length)
                    bytes[position] = byte
                    let output = ByteBuffer(capacity: 64)
                    output.append(bytes.span, Escaping(for: bytes.span, printableFrom: Escaping.word))
                    let isPlain = byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
                    #expect(output.count == length + (isPlain ? 0 : 3))
                }
            }
        }
    }
}
