import HTTPSemantics
import Repeatable
import Testing

@Suite struct BodyDecoderTests {
    static let chunked: [(input: String, expected: String)] = [
        ("0\r\n\r\n", "| rest="),
        ("5\r\nhello\r\n0\r\n\r\nGET", "hello| rest=GET"),
        ("5\r\nhello\r\n1\r\n!\r\n000\r\n\r\n", "hello!| rest="),
        ("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789| rest="),
        ("5\r\nhello\r\n0\r\nX: y\r\nZ:\r\n\r\nGET", "hello| rest=GET [X=y] [Z=]"),
        ("5\r\nhel", "hel| truncated"),
        ("5\r\nhello\r\n", "hello| truncated"),
        ("5\r\nhello\r\n0\r\n", "hello| truncated"),
        ("5\r\nhello\r\n0\r\nX: y\r\n", "hello| truncated"),
        ("", "| truncated"),
        // Sizes
        ("\r\n", "| 400 chunk-size-invalid @0"),
        (" 5\r\n", "| 400 chunk-size-invalid @0"),
        ("+5\r\n", "| 400 chunk-size-invalid @0"),
        (" +5\r\n", "| 400 chunk-size-invalid @0"),
        ("-5\r\n", "| 400 chunk-size-invalid @0"),
        ("0x10\r\n", "| 400 chunk-size-invalid @1"),
        ("5_0\r\n", "| 400 chunk-size-invalid @1"),
        ("5g\r\n", "| 400 chunk-size-invalid @1"),
        (";a\r\n", "| 400 chunk-size-invalid @0"),
        ("5\nhello\r\n", "| 400 chunk-size-invalid @1"),
        ("5\rxhello\r\n", "| 400 chunk-size-invalid @2"),
        ("5\u{0b}\r\nhello\r\n", "| 400 chunk-size-invalid @1"),
        ("5 \r\nhello\r\n", "| 400 chunk-extension-invalid @2"),
        ("5\t\r\nhello\r\n", "| 400 chunk-extension-invalid @2"),
        ("7FFFFFFFFFFFFFFF\r\nx", "x| truncated"),
        ("8000000000000000\r\nx", "| 400 chunk-size-too-large @15"),
        ("FFFFFFFFFFFFFFFF\r\nx", "| 400 chunk-size-too-large @15"),
        ("FFFFFFFFFFFFFFFFF\r\nx", "| 400 chunk-size-too-large @15"),
        ("100000000000000005\r\nhello", "| 400 chunk-size-too-large @16"),
        ("00000000000000005\r\nhello", "| 400 chunk-size-too-large @16"),
        // Data
        ("5\r\nhello0\r\n\r\n", "hello| 400 chunk-end-missing @8"),
        ("5\r\nhello\n0\r\n\r\n", "hello| 400 chunk-end-missing @8"),
        ("5\r\nhello\r0\r\n\r\n", "hello| 400 chunk-end-missing @9"),
        ("5\r\nhello!\r\n0\r\n\r\n", "hello| 400 chunk-end-missing @8"),
        // Extensions
        ("5;a\r\nhello\r\n0\r\n\r\n", "hello| rest="),
        ("5;a=b;c=\"d \\\" ;\t\";e\r\nhello\r\n0;f\r\n\r\n", "hello| rest="),
        ("5 ; a = b ; c = \"d\" ;e\r\nhello\r\n0\r\n\r\n", "hello| rest="),
        ("5;\r\nhello", "| 400 chunk-extension-invalid @2"),
        ("5;a=\r\nhello", "| 400 chunk-extension-invalid @4"),
        ("5;a \r\nhello", "| 400 chunk-extension-invalid @4"),
        ("5;a=b \r\nhello", "| 400 chunk-extension-invalid @6"),
        ("5;a b\r\nhello", "| 400 chunk-extension-invalid @4"),
        ("5;a\nhello", "| 400 chunk-extension-invalid @3"),
        ("5;a\r\r\nhello", "| 400 chunk-size-invalid @4"),
        ("5;\u{0}\r\nhello", "| 400 chunk-extension-invalid @2"),
        ("5;ext=\"\r\nhello", "| 400 chunk-extension-invalid @7"),
        ("5;ext=\"\n\"\r\nhello", "| 400 chunk-extension-invalid @7"),
        ("5;ext=\"\\\r\nhello", "| 400 chunk-extension-invalid @8"),
        ("5;ext=\"a\"b\r\nhello", "| 400 chunk-extension-invalid @9"),
        ("5;\(String(repeating: "a", count: 255))\r\nhello\r\n0\r\n\r\n", "| 400 chunk-extensions-too-long"),
        ("5;\(String(repeating: "a", count: 254))\r\nhello\r\n0\r\n\r\n", "hello| rest="),
        // Trailers
        ("0\r\nX : y\r\n\r\n", "| 400 space-before-colon @4"),
        ("0\r\nX: y\n\r\n", "| 400 bare-line-feed @7"),
        ("0\r\n\n", "| 400 bare-line-feed @3"),
        ("0\r\n X: y\r\n\r\n", "| 400 folded-line @3"),
        ("0\r\nX: \(String(repeating: "y", count: 9000))\r\n\r\n", "| 431 trailers-too-large @8195"),
        ("0\r\n\(String(repeating: "X: y\r\n", count: 51))\r\n", "| 431 too-many-fields"),
    ]

    @Test func `chunks are parsed strictly`() {
        for row in Self.chunked {
            let result = readBody(wire(row.input), .chunked)
            #expect(result.hasPrefix(row.expected), "\(row.input.debugDescription) gave \(result)")
        }
    }

    @Test func `the content does not depend on how the bytes arrive`() {
        var generator = SeededGenerator(ofTest: 2)
        for row in Self.chunked {
            let body = wire(row.input)
            let atOnce = readBody(body, .chunked)
            let byByte = readBody(body, .chunked, .byteByByte)
            #expect(byByte == atOnce, "\(row.input.debugDescription)")
            for _ in 0..<5 * Rounds.count where body.count > 1 {
                let delivery = Delivery.cut((0..<3).map { _ in Int.random(in: 1..<body.count, using: &generator) })
                let split = readBody(body, .chunked, delivery)
                #expect(split == atOnce, "\(row.input.debugDescription) \(delivery)")
            }
        }
    }

    @Test func `many tiny chunks with long extensions are refused`() {
        let chunk = "1;\(String(repeating: "a", count: 200))\r\nx\r\n"
        let result = readBody(wire(String(repeating: chunk, count: 200) + "0\r\n\r\n"), .chunked)
        #expect(result.contains("400 chunk-extensions-too-long"))
        let fair = readBody(wire(String(repeating: "1\r\nx\r\n", count: 5000) + "0\r\n\r\n"), .chunked)
        #expect(fair.hasSuffix("| rest="))
    }

    @Test func `content with a length is read to the last byte`() {
        for delivery in [Delivery.atOnce, .byteByByte, .cut([2])] {
            let whole = readBody(wire("helloGET"), .length(5), delivery)
            let short = readBody(wire("hell"), .length(5), delivery)
            let none = readBody(wire("GET"), .none, delivery)
            let zero = readBody(wire("GET"), .length(0), delivery)
            #expect(whole == "hello| rest=GET" && short == "hell| truncated")
            #expect(none == "| rest=GET" && zero == "| rest=GET")
        }
    }

    @Test func `only the end of the connection ends a body without a length`() {
        for delivery in [Delivery.atOnce, .byteByByte] {
            let result = readBody(wire("hello"), .untilClose, delivery)
            #expect(result == "hello| complete")
        }
        var empty = BodyDecoder(.length(3))
        #expect(!empty.isComplete)
        #expect(empty.endOfStream() == .truncated)
    }

    @Test func `a body that failed stays failed`() throws {
        var decoder = ChunkedDecoder()
        let bad = wire("zz")
        let good = wire("0\r\n\r\n")
        #expect(throws: MessageSyntaxError.self) { _ = try decoder.decode(bad.span) }
        #expect(throws: MessageSyntaxError.self) { _ = try decoder.decode(good.span) }
        decoder.reset()
        let step = try decoder.decode(good.span)
        #expect(step == BodyStep(5, .end))
    }
}
