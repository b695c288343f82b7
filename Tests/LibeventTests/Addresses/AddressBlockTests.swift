import Bytes
import Libevent
import Testing

@Suite struct `An address block` {
    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("192.0.2.7", "192.0.2.7", true),
        ("192.0.2.7", "192.0.2.8", false),
        ("192.0.2.128/25", "192.0.2.129", true), ("192.0.2.128/25", "192.0.2.127", false),
        ("0.0.0.0/0", "203.0.113.9", true),
        ("0.0.0.0/0", "2001:db8::1", false), ("::/0", "203.0.113.9", true), ("2001:db8::/32", "2001:db8:ffff::1", true),
        ("2001:db8::/32", "2001:db9::1", false), ("2001:db8::/65", "2001:db8:0:0:7fff::1", true),
        ("2001:db8::/65", "2001:db8:0:0:8000::1", false),
        ("::1", "::1", true), ("127.0.0.0/8", "::ffff:127.0.0.1", true), ("::ffff:10.0.0.0/104", "10.1.2.3", true),
    ])
    func `an address block holds the addresses that share its first bits`(
        _ block: String, _ address: String, _ holds: Bool
    ) throws {
        let block = try AddressBlock(parsing: block)
        let bytes = Array(address.utf8)
        let address = IPAddress(bytes.span)
        let isHeld = address.map { block.contains($0) }
        #expect(isHeld == holds)
    }

    @Test(arguments: ["10.0.0.0/8", "192.0.2.7", "0.0.0.0/0", "2001:db8::/32", "::1", "::/0", "fe80::/10"])
    func `an address block is written as parsed`(_ text: String) throws {
        #expect(try AddressBlock(parsing: text).description == text)
    }

    @Test(arguments: [
        ("", AddressBlock.SyntaxError.address), ("localhost", .address), ("10.0.0", .address), ("10.0.0.0.0", .address),
        ("[::1]", .address), ("::1%lo", .address),
        ("10.0.0.0:80", .address), ("/8", .address), ("10.0.0.0/", .length), ("10.0.0.0/33", .length),
        ("::/129", .length), ("10.0.0.0/-1", .length),
        ("10.0.0.0/+8", .length), ("10.0.0.0/8/8", .length), ("10.0.0.0/255.0.0.0", .length), ("10.0.0.1/8", .hostBits),
        ("2001:db8::1/32", .hostBits),
    ])
    func `an invalid address block is refused with the reason`(_ text: String, _ error: AddressBlock.SyntaxError) {
        #expect(throws: error) { try AddressBlock(parsing: text) }
    }

    @Test func `an address that a zero byte would cut short, or that is too long, is refused`() {
        let cut = Array("127.0.0.1".utf8) + [0, 0x78]
        let long = Array(("::" + String(repeating: "0", count: 60) + "1").utf8)
        for text in [cut, long] {
            let address = IPAddress(text.span)
            #expect(address == nil)
        }
    }
}
