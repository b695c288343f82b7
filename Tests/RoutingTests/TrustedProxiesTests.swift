import Bytes
import HTTPSemantics
import Libevent
import RouteTesting
import Testing

@testable import Routing

@Suite struct `Trusted proxies` {
    private static let proxies = TrustedProxies(
        ["127.0.0.1", "10.0.0.0/8", "fd00::/8"].map { text in
            (try? AddressBlock(parsing: text)).map(AddressPattern.addresses) ?? .unix
        })

    @Test(arguments: [
        ("203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9", "203.0.113.9"),
        // Behind two of them.
        ("198.51.100.1, 203.0.113.9, 10.1.2.3", "203.0.113.9"),
        ("203.0.113.9,\t10.1.2.3 , 127.0.0.1", "203.0.113.9"),
        // All are proxies: the one that was there first.
        ("10.9.9.9, 10.1.2.3", "10.9.9.9"),
        ("2001:db8::7, fd00::1", "2001:db8::7"),
        ("[2001:db8::7]:4711", "2001:db8::7"), ("203.0.113.9:4711", "203.0.113.9"),
        // As far as it can be followed.
        ("unknown", ""), ("203.0.113.9, unknown", ""), ("203.0.113.9, unknown, 10.1.2.3", "10.1.2.3"),
        ("_hidden, 10.0.0.1", "10.0.0.1"),
        ("", ""), (", ,", ""), ("203.0.113.9, ,", "203.0.113.9"), ("[", ""), ("[]", ""), (":", ""), ("\u{e9}\"", ""),
    ])
    func `the client is the last address that is not trusted`(_ field: String, _ client: String) throws {
        let head = try ParsedHead("GET /\nX-Forwarded-For: \(field)")
        let fields = head.fields
        let found = String(Self.proxies.client(in: fields.view))
        #expect(found == client)
    }

    @Test func `several lines form one list`() throws {
        let head = try ParsedHead(
            "GET /\nX-Forwarded-For: 198.51.100.1\nAccept: */*\nX-Forwarded-For: 203.0.113.9, 10.0.0.1\nX-Forwarded-For: 10.0.0.2"
        )
        let fields = head.fields
        let found = String(Self.proxies.client(in: fields.view))
        #expect(found == "203.0.113.9")
    }

    @Test func `a peer is trusted by its address, or by its kind of socket`() {
        #expect(Self.proxies.include(.ipv4(IPv4Address(10, 4, 4, 4), port: 1)))
        #expect(Self.proxies.include(.ipv6(IPv6Address(high: 0, low: 0xFFFF_7F00_0001), port: 1)))
        #expect(!Self.proxies.include(.ipv4(IPv4Address(11, 4, 4, 4), port: 1)))
        #expect(!Self.proxies.include(.unix(path: "")))
        #expect(TrustedProxies([.unix]).include(.unix(path: "")))
        #expect(!TrustedProxies([.unix]).include(.ipv4(.loopback, port: 1)))
    }
}
