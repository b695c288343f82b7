import Bytes
import HTTPSemantics
import Repeatable
import Testing

@testable import Storage

/// Which purges a key is one of.
struct PurgeIndexTests {
    private static func key(_ text: String) -> CacheKey {
        let bytes = ByteSlice(text)
        return CacheKey(hash: Sample.hasher.hash(bytes.span), bytes: bytes)
    }

    private static func purges(_ key: String, in index: PurgeIndex) -> Set<Int> {
        var found: Set<Int> = []
        index.find(Self.key(key)) { found.insert($0) }
        return found
    }

    private static func purge(_ urls: [String] = [], below prefixes: [String] = []) -> PurgedURLs {
        var purge = PurgedURLs(below: prefixes.map { ByteSlice($0) })
        for url in urls { purge.add(urlOf: key(url)) }
        return purge
    }

    @Test func `each purge that has the key is found`() {
        let index = PurgeIndex([
            Self.purge(below: ["http a /img"]), Self.purge(below: ["http a /img/"]), Self.purge(["http a /img/a\0x"]),
            Self.purge(below: ["http a /"]), .everything, Self.purge(["http a /img"], below: ["http b /"]),
        ])
        #expect(Self.purges("http a /img", in: index) == [0, 3, 4, 5])
        #expect(Self.purges("http a /img\0y", in: index) == [0, 3, 4, 5])
        #expect(Self.purges("http a /img?a", in: index) == [0, 3, 4])
        #expect(Self.purges("http a /img/a", in: index) == [0, 1, 2, 3, 4])
        #expect(Self.purges("http a /img/a\0/img", in: index) == [0, 1, 2, 3, 4])
        #expect(Self.purges("http a /img/a/b", in: index) == [0, 1, 3, 4])
        #expect(Self.purges("http a /img 7 x", in: index) == [0, 3, 4])
        #expect(Self.purges("http a /images", in: index) == [3, 4])
        #expect(Self.purges("https a /img", in: index) == [4])
        #expect(Self.purges("http b /\0/img", in: index) == [4, 5])
    }

    @Test func `no purge has any key`() {
        #expect(Self.purges("http a /", in: PurgeIndex([])).isEmpty)
        #expect(Self.purges("http a /", in: PurgeIndex([Self.purge()])).isEmpty)
    }

    @Test(arguments: Rounds.seeds(50)) func `as a comparison with each URL finds them`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func path() -> String {
            (0..<Int.random(in: 0...4, using: &random)).map { _ in
                ["/", "/a", "b", "?", "/ab", " "].randomElement(using: &random) ?? ""
            }
            .joined()
        }
        let purges = (0..<Int.random(in: 1...12, using: &random)).map { _ in
            (
                urls: (0..<Int.random(in: 0...2, using: &random)).map { _ in path() },
                prefixes: (0..<Int.random(in: 0...3, using: &random)).map { _ in path() }
            )
        }
        let index = PurgeIndex(purges.map { Self.purge($0.urls, below: $0.prefixes) })
        for _ in 0..<200 {
            let url = path()
            let key = Self.key(url + ["", "\0", "\0/a"][Int.random(in: 0..<3, using: &random)])
            let expected = purges.indices.filter { number in
                purges[number].urls.contains(url)
                    || purges[number].prefixes.contains { prefix in
                        let bytes = ByteSlice(prefix)
                        return key.isBelow(bytes.span)
                    }
            }
            var found: Set<Int> = []
            index.find(key) { found.insert($0) }
            #expect(found == Set(expected), "\(url)")
            #expect(index.contains(key) == !expected.isEmpty)
        }
    }
}
