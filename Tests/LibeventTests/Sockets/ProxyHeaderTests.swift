import Libevent
import Repeatable
import Testing

@Suite struct `A PROXY header` {
    private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10]
    private static let ipv4: [UInt8] = [192, 0, 2, 1, 198, 51, 100, 1, 0xDC, 0x04, 0x01, 0xBB]
    private static let ipv6: [UInt8] =
        [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7] + [UInt8](repeating: 0, count: 16)
        + [0x12, 0x67, 0, 80]

    private static func binary(_ command: UInt8, _ family: UInt8, _ content: [UInt8]) -> [UInt8] {
        signature + [command, family, UInt8(content.count >> 8), UInt8(content.count & 255)] + content
    }

    private static func value(_ type: UInt8, _ content: [UInt8]) -> [UInt8] {
        [type, UInt8(content.count >> 8), UInt8(content.count & 255)] + content
    }

    struct Header: Sendable, CustomTestStringConvertible {
        let bytes: [UInt8]
        let source: String?
        let testDescription: String

        init(_ line: String, _ source: String?) {
            (bytes, self.source, testDescription) = (Array(line.utf8), source, line)
        }
        init(_ name: String, _ bytes: [UInt8], _ source: String?) {
            (self.bytes, self.source, testDescription) = (bytes, source, name)
        }
    }

    /// With a checksum (type 3) as other programs compute it: of the whole header, with four zeros in its place.
    private static let withChecksum =
        binary(0x21, 0x11, ipv4 + value(0x03, [0, 0, 0, 0])).enumerated().map { index, byte in
            index >= 31 ? sum[index - 31] : byte
        }
    private static let sum: [UInt8] = [0x73, 0x7E, 0xE9, 0x19]

    static let right = [
        Header("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n", "192.0.2.1:56324"),
        Header("PROXY TCP6 2001:db8::7 2001:db8::1 4711 80\r\n", "[2001:db8::7]:4711"),
        Header("PROXY UNKNOWN\r\n", nil), Header("PROXY UNKNOWN ffff:f:f 1 2 3\r\n", nil),
        Header("TCP over IPv4", binary(0x21, 0x11, ipv4), "192.0.2.1:56324"),
        Header("TCP over IPv6", binary(0x21, 0x21, ipv6), "[2001:db8::7]:4711"),
        Header("the proxy's own", binary(0x20, 0x11, ipv4), nil), Header("nothing known", binary(0x20, 0, []), nil),
        Header("unspecified", binary(0x21, 0, [1, 2, 3]), nil),
        Header("a Unix socket", binary(0x21, 0x31, [UInt8](repeating: 7, count: 216)), nil),
        Header(
            "further values", binary(0x21, 0x11, ipv4 + value(0x02, Array("a.example".utf8)) + value(0x20, [1, 0])),
            "192.0.2.1:56324"),
        Header("a checksum", withChecksum, "192.0.2.1:56324"),
    ]

    @Test(arguments: right) func `is complete with its last byte, and not before`(_ header: Header) throws {
        for count in 0..<header.bytes.count {
            #expect(try ProxyHeader.parse(header.bytes.span.extracting(0..<count)) == .incomplete, "\(count) bytes")
        }
        for rest in ["", "GET / HTTP/1.1\r\n"] {
            let progress = try ProxyHeader.parse((header.bytes + Array(rest.utf8)).span)
            guard case .complete(let length, let source) = progress else { throw TestFailure() }
            #expect(length == header.bytes.count && source.map { "\($0)" } == header.source)
        }
    }

    private struct TestFailure: Error {}

    @Test(
        arguments: [
            ("GET / HTTP/1.1\r\n", .beginning), ("PROXX", .beginning), ("\r\n\r\n\u{1}", .beginning),
            ("PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n", .line),
            ("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 \r\n", .line),
            ("PROXY TCP4  192.0.2.1 198.51.100.1 1 2\r\n", .line),
            ("PROXY TCP4 ::1 ::1 1 2\r\n", .line), ("PROXY TCP6 192.0.2.1 192.0.2.1 1 2\r\n", .line),
            ("PROXY TCP4 192.0.2.1 198.51.100.1 65536 443\r\n", .line),
            ("PROXY TCP4 192.0.2.1 198.51.100.1 -1 443\r\n", .line), ("PROXY UDP4 192.0.2.1 192.0.2.1 1 2\r\n", .line),
            ("PROXY " + String(repeating: "x", count: 200), .line),
        ] as [(String, ProxyHeader.SyntaxError)])
    func `with a mistake in its line is refused`(_ text: String, _ error: ProxyHeader.SyntaxError) {
        #expect(throws: error) { try ProxyHeader.parse(Array(text.utf8).span) }
    }

    @Test func `with a mistake in its bytes is refused`() {
        var wrongSum = Self.withChecksum
        wrongSum[20] ^= 1
        let wrong: [([UInt8], ProxyHeader.SyntaxError)] = [
            (Self.binary(0x11, 0x11, Self.ipv4), .version), (Self.binary(0x22, 0x11, Self.ipv4), .version),
            (Self.binary(0x21, 0x12, Self.ipv4), .family), (Self.binary(0x21, 0x11, [1, 2]), .length),
            (Self.binary(0x21, 0x11, Self.ipv4 + [4]), .length),
            (Self.binary(0x21, 0x11, Self.ipv4 + [4, 0, 9, 1]), .length),
            (Self.binary(0x21, 0x11, Self.ipv4 + Self.value(3, [1])), .length),
            (Self.binary(0x21, 0x11, [UInt8](repeating: 0, count: 5000)), .length), (wrongSum, .checksum),
        ]
        for (bytes, error) in wrong { #expect(throws: error) { try ProxyHeader.parse(bytes.span) } }
    }

    @Test func `of random bytes never reaches beyond them`() {
        var random = SeededGenerator(ofTest: 28)
        for _ in 0..<20_000 * Rounds.count {
            var bytes = Self.right[Int.random(in: 0..<Self.right.count, using: &random)].bytes
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random))
            if case .complete(let length, _)? = try? ProxyHeader.parse(bytes.span) { #expect(length <= bytes.count) }
        }
    }
}
