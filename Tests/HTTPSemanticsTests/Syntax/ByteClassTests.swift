import HTTPSemantics
import Testing

/// Each byte, in each place where the grammar has a class of its own.
@Suite struct ByteClassTests {
    private static let letters = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".utf8)

    private func accepted(_ parts: [UInt8]...) -> Bool { readRequest(parts.flatMap { $0 }).hasPrefix("GET") }

    @Test func `the bytes of a name, a value, a target and a host are those of the grammar`() {
        let tokens = Self.letters.union("!#$%&'*+-.^_`|~".utf8)
        let hosts = Self.letters.union("-._~!$&'()*+,;=".utf8)
        for byte in UInt8.min ... .max {
            let name = accepted(wire("GET / HTTP/1.1\r\nHost: a\r\nx"), [byte], wire("y: z\r\n\r\n"))
            // A colon ends the name, and is the only other byte that may stand there.
            #expect(name == (tokens.contains(byte) || byte == 0x3a), "\(byte) in a name")
            let value = accepted(wire("GET / HTTP/1.1\r\nHost: a\r\nx: a long enough value"), [byte], wire("y\r\n\r\n"))
            #expect(value == (byte == 0x09 || (byte >= 0x20 && byte != 0x7f)), "\(byte) in a value")
            let target = accepted(wire("GET /a-long-enough-target"), [byte], wire("y HTTP/1.1\r\nHost: a\r\n\r\n"))
            #expect(target == (byte > 0x20 && byte < 0x7f && byte != 0x23), "\(byte) in a target")
            let host = accepted(wire("GET / HTTP/1.1\r\nHost: a"), [byte], wire("b\r\n\r\n"))
            #expect(host == hosts.contains(byte), "\(byte) in a host")
        }
    }
}
