import Bytes
import Testing

@testable import SharedTier

/// Names, tokens and codes that are the same on all machines and in all versions.
@Suite struct HashTests {
    private func hexadecimal(_ bytes: [UInt8]) -> String {
        let text = ByteBuffer(capacity: 64)
        for byte in bytes { text.append(hexadecimal: UInt64(byte), width: 2) }
        return String(text.copied())
    }

    /// FIPS 180-4's examples, and lengths around a block.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func `a digest is SHA-256`(text: String, digest: String) {
        var hash = SHA256()
        hash.add(ByteSlice(text).span)
        #expect(hexadecimal(hash.digest()) == digest)
    }

    @Test func `a digest of a million bytes is SHA-256`() {
        var hash = SHA256()
        for _ in 0..<1000 { hash.add([UInt8](repeating: 0x61, count: 1000).span) }
        #expect(hexadecimal(hash.digest()) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
    }

    /// RFC 4231 §4.2, §4.3, §4.7.
    @Test(arguments: [
        (
            [UInt8](repeating: 0x0b, count: 20), "Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            Array("Jefe".utf8), "what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            [UInt8](repeating: 0xaa, count: 131), "Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
    ])
    func `a code is HMAC-SHA-256`(key: [UInt8], text: String, code: String) {
        var hmac = HMAC(key: HMAC.block(of: key.span))
        hmac.add(ByteSlice(text).span)
        #expect(hexadecimal(hmac.code()) == code)
    }

    @Test func `the names of a key are the same for every version of the program`() {
        let keys = TierKeys(prefix: ByteSlice("co"), primary: ByteSlice("http example.com /").span)
        #expect(String(keys.resource) == "co:{4YS8mR-ZEhR86CUnwQknBw}:m")
        #expect(String(keys.lease(.empty)) == "co:{4YS8mR-ZEhR86CUnwQknBw}:l:")
        #expect(String(keys.lease(ByteSlice("v"))) == "co:{4YS8mR-ZEhR86CUnwQknBw}:l:v")
        #expect(String(keys.stream(ByteSlice("t.1"))) == "co:{4YS8mR-ZEhR86CUnwQknBw}:b:t.1")
        #expect(String(TierKeys.purges(prefix: ByteSlice("co"))) == "co:purge")
        let variants = ["", "x", "y"].map { TierKeys.variant(of: ByteSlice($0).span) }
        #expect(variants.map(\.count) == [0, 22, 22])
        #expect(Set(variants).count == 3)
    }

    @Test func `a hash has 22 characters, which differ in every bit`() {
        func text(_ high: UInt64, _ low: UInt64) -> String {
            let text = ByteBuffer(capacity: 22)
            TierHash(high, low).append(to: text)
            return String(text.copied())
        }
        #expect(text(0, 0) == "AAAAAAAAAAAAAAAAAAAAAA")
        #expect(text(.max, .max) == "_____________________w")
        var all: Set<String> = [text(0, 0)]
        for bit in 0..<64 {
            all.insert(text(1 << UInt64(bit), 0))
            all.insert(text(0, 1 << UInt64(bit)))
        }
        #expect(all.count == 129)
    }

    @Test func `no two loops have a token in common`() {
        var (one, other) = (TierTokens(), TierTokens())
        var all: Set<ByteSlice> = []
        for _ in 0..<100 {
            all.insert(one.next())
            all.insert(other.next())
        }
        #expect(all.count == 200)
    }

    @Test func `functions that change have a new version`() {
        var hash = SHA256()
        hash.add(TierFunctions.text.bytes)
        // If this fails, raise the version in all names of the library, then write the new digest here.
        #expect(hexadecimal(hash.digest()) == "811d7ec90980957acf6e75e26b4db5b10a9bea4b7da798a06297d83d1e3b38ed")
        let name = "#!lua name=" + String(TierFunctions.library.bytes) + "\n"
        #expect(String(TierFunctions.text.bytes).hasPrefix(name))
    }
}
