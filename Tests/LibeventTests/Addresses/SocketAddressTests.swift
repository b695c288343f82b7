import Bytes
import Libevent
import Testing

@Suite struct SocketAddressTests {
    @Test(
        arguments: [
            ("127.0.0.1:8080", .ipv4(IPv4Address(127, 0, 0, 1), port: 8080)),
            ("0.0.0.0:0", .ipv4(.any, port: 0)),
            ("255.1.2.3:65535", .ipv4(IPv4Address(255, 1, 2, 3), port: 65535)),
            ("[::1]:80", .ipv6(.loopback, port: 80)),
            ("[::]:80", .ipv6(.any, port: 80)),
            ("[2001:db8::ff]:443", .ipv6(IPv6Address(high: 0x2001_0db8_0000_0000, low: 0xff), port: 443)),
            ("[fe80::1%1]:80", .ipv6(IPv6Address(high: 0xfe80 << 48, low: 1), port: 80, scope: 1)),
            ("unix:/run/coalesced.sock", .unix(path: "/run/coalesced.sock")),
            ("unix:///run/a.sock", .unix(path: "///run/a.sock")),
        ] as [(String, SocketAddress)])
    func `an address is written as parsed`(text: String, address: SocketAddress) throws {
        #expect(try SocketAddress(parsing: text) == address)
        #expect(address.description == text)
    }

    @Test(
        arguments: [
            ("127.0.0.1", .missingPort), ("127.0.0.1:", .missingPort), ("[::1]", .missingPort), ("", .empty),
            ("127.0.0.1:65536", .badPort), ("127.0.0.1:+80", .badPort), ("127.0.0.1:8 0", .badPort),
            ("127.0.0.1:-1", .badPort),
            ("8080", .missingHost), (":80", .missingHost), ("*:80", .missingHost), ("localhost:80", .localhost),
            ("nowhere:80", .badHost), ("1.2.3:80", .badHost), ("1.2.3.4.5:80", .badHost),
            ("01.2.3.4:80", .badHost),
            ("[127.0.0.1]:80", .badHost), ("[::g]:80", .badHost), ("[fe80::1%]:80", .badHost),
            ("::1:80", .missingBracket), ("[::1:80", .missingBracket),
            ("unix:", .badPath), ("unix:/\(String(repeating: "x", count: 107))", .badPath),
        ] as [(String, AddressSyntaxError)])
    func `an invalid address is refused with the reason`(text: String, error: AddressSyntaxError) {
        #expect(throws: error) { try SocketAddress(parsing: text) }
    }

    @Test func `the host is written without the port for forwarding fields`() {
        #expect(SocketAddress.ipv6(.loopback, port: 80).host == "::1")
        #expect(SocketAddress.ipv4(.loopback, port: 80).host == "127.0.0.1")
        #expect(SocketAddress.ipv4(.loopback, port: 80).withPort(81).port == 81)
    }

    @Test(arguments: [
        "127.0.0.1:1", "0.0.0.0:1", "255.255.255.255:1", "1.20.109.99:1", "100.10.9.200:1", "[fe80::1%1]:1", "unix:/a",
    ])
    func `the host as bytes equals the host as text`(text: String) throws {
        let address = try SocketAddress(parsing: text)
        #expect(String(address.hostText) == address.host)
    }

    @Test(arguments: [
        ("127.9.9.9:80", true), ("128.0.0.1:80", false), ("0.0.0.0:80", false),
        ("[::1]:80", true), ("[::ffff:127.0.0.1]:80", true), ("[::ffff:10.0.0.1]:80", false), ("[::]:80", false),
        ("unix:/a", false),
    ])
    func `an address is a loopback address if only this machine reaches its port`(
        text: String, isLoopback: Bool
    ) throws {
        #expect(try SocketAddress(parsing: text).isLoopback == isLoopback)
    }
}
