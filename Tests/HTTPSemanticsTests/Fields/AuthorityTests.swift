import Bytes
import HTTPSemantics
import Testing

@Suite struct AuthorityTests {
    @Test(arguments: [
        ("Example.COM", "example.com"), ("a:80", "a"), ("a:", "a"), ("a:080", "a"), ("a:8080", "a:8080"),
        ("a:08080", "a:8080"),
        ("a:443", "a:443"), ("[2001:DB8::1]:80", "[2001:db8::1]"), ("a%2F", "a%2f"), ("", ""),
        ("192.0.2.1:81", "192.0.2.1:81"),
    ]) func `equal hosts share one key`(host: String, key: String) {
        let buffer = ByteBuffer(capacity: 16)
        buffer.appendKeyHost(wire(host).span, defaultPort: 80)
        let result = plain(buffer.span)
        #expect(result == key)
    }

    @Test(arguments: [
        ("::", true), ("::1", true), ("1::", true), ("1:2:3:4:5:6:7:8", true), ("1::8", true), ("::ffff:1.2.3.4", true),
        ("1:2:3:4:5:6:1.2.3.4", true), ("abcd:ef01:2345:6789:abcd:ef01:2345:6789", true), ("1:2:3:4:5:6:7::", true),
        ("", false), (":", false), (":::", false), ("1", false), ("1:2:3:4:5:6:7", false), ("1:2:3:4:5:6:7:8:9", false),
        ("1::2::3", false), ("12345::", false), ("g::", false), (":1::2", false), ("1:2:3:4:5:6:7:", false),
        ("1:2:3:4:5:6:7:8::", false), ("::1.2.3", false), ("::1.2.3.256", false), ("::1.2.3.4.5", false),
        ("::01.2.3.4", false),
        ("1.2.3.4", false), ("1.2.3.4::", false), ("1:2:3:4:5:6:7:1.2.3.4", false), ("fe80::1%25eth0", false),
        ("::1.2.3.", false),
        ("v1.a", false),
    ]) func `an address literal is an IPv6 address`(address: String, valid: Bool) {
        let authority = Authority(wire("[\(address)]").span)
        #expect((authority != nil) == valid)
    }

    @Test func `an authority is split into host and port`() throws {
        let parsed = Authority(wire("[::1]:99").span)
        let authority = try #require(parsed)
        #expect(authority.host.range == 0..<5)
        #expect(authority.port == 99)
        for bad in [
            "a b", "a/", "a?", "a@b", "a#", "[::1]a", "[::1", "a]", "a:1:2", "a:-1", "a:99999", "a\u{e9}", "a%g0",
            "a\\b", "<",
        ] {
            let result = Authority(wire(bad).span)
            #expect(result == nil, "\(bad)")
        }
    }
}
