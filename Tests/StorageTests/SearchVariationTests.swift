import Bytes
import HTTPSemantics
import Storage
import Testing

/// What responses teach about their paths' queries (No-Vary-Search draft).
@Suite struct SearchVariationTests {
    let variations = SearchVariations(hash: Sample.hasher)

    static func rule(_ value: String) -> NoVarySearch { NoVarySearch(Sample.head([("No-Vary-Search", value)]).view) }

    private func learn(_ value: String, _ key: String) -> SearchVariation? {
        variations.learn(Self.rule(value), for: Array(key.utf8).span)
    }

    private func latest(_ key: String) -> SearchVariation? { variations.latest(for: Array(key.utf8).span) }
    private func all(_ key: String) -> [UInt64] { variations.all(for: Array(key.utf8).span).map(\.number) }

    private func key(_ key: String, _ variation: SearchVariation) -> String {
        let buffer = ByteBuffer(capacity: 64)
        SearchKey.append(Array(key.utf8).span, under: variation, to: buffer, using: QueryParameters())
        return String(buffer.copied())
    }

    @Test func `a variation learnt from one URL holds for its path with any query, and for no other path`() {
        #expect(variations.isEmpty)
        let taught = learn("except=()", "http a /p?x=1")
        #expect(!variations.isEmpty)
        for key in ["http a /p", "http a /p?", "http a /p?y", "http a /p?x=1\0\u{1}en", "http a /p\0\u{2}"] {
            #expect(latest(key) === taught, "\(key)")
        }
        for key in ["http a /", "http a /pp", "http a /p/", "http b /p?x=1", "http a /P?x=1"] {
            #expect(latest(key) == nil, "\(key)")
        }
    }

    @Test func `an invalidation concerns the URLs of its own path, and one of everything all URLs`() {
        func wasInvalidated(since number: UInt64) -> Bool {
            variations.wasInvalidated(Array("http a /p?x=1".utf8).span, since: number)
        }
        let first = variations.invalidations
        for other in 0..<10 { _ = variations.invalidate(Array("http a /other\(other)?x=1".utf8).span) }
        #expect(!wasInvalidated(since: first))
        _ = variations.invalidate(Array("http a /p?y".utf8).span)
        #expect(wasInvalidated(since: first))
        let second = variations.invalidations
        #expect(!wasInvalidated(since: second))
        variations.invalidateAll()
        #expect(wasInvalidated(since: second))
        #expect(!wasInvalidated(since: variations.invalidations))
    }

    @Test func `an invalidation is given the variations of its path`() throws {
        let first = try #require(learn("params=(\"a\")", "http a /p"))
        let second = try #require(learn("params=(\"b\")", "http a /p"))
        _ = learn("except=()", "http a /q")
        let found = variations.invalidate(Array("http a /p?y".utf8).span)
        #expect(found.map(\.number) == [second.number, first.number])
        #expect(variations.invalidate(Array("http a /none".utf8).span).isEmpty)
    }

    @Test func `the latest variation counts, and each keeps its number while known`() throws {
        let first = try #require(learn("params=(\"a\")", "http a /p"))
        let second = try #require(learn("params=(\"b\")", "http a /p"))
        #expect(latest("http a /p") === second)
        #expect(learn("params=(\"a\")", "http a /p?q") === first)
        #expect(latest("http a /p") === first)
        #expect(all("http a /p") == [first.number, second.number])
    }

    @Test func `the last few variations of a path are known, and a forgotten one gets another number`() throws {
        let first = try #require(learn("params=(\"0\")", "http a /p"))
        for name in 1...SearchVariations.mostOfPath { _ = learn("params=(\"\(name)\")", "http a /p") }
        #expect(all("http a /p").count == SearchVariations.mostOfPath)
        #expect(!all("http a /p").contains(first.number))
        #expect(try #require(learn("params=(\"0\")", "http a /p")).number != first.number)
    }

    @Test func `the table is bounded, and requested paths stay`() {
        let asked = learn("except=()", "http a /asked")
        let left = learn("except=()", "http a /left")
        for number in 0..<40_000 {
            _ = learn("except=()", "http a /\(number)")
            if number % 50 == 0 { _ = latest("http a /asked") }
        }
        #expect(latest("http a /asked") === asked)
        #expect(latest("http a /left") == nil)
        #expect(left != nil)
        // No entry is smaller than its overhead.
        let known = (0..<40_000).count { latest("http a /\($0)") != nil }
        #expect(known > 5_000 && known < SearchVariations.capacity / 160)
    }

    @Test func `a variation that is too large is not learnt`() {
        let names = (0..<100).map { "\"parameter\($0)\"" }.joined(separator: " ")
        #expect(learn("params=(\(names))", "http a /p") == nil)
        #expect(learn("except=()", "http a /" + String(repeating: "p", count: SearchVariations.largest)) == nil)
        #expect(variations.isEmpty)
    }

    @Test func `equivalent URLs of one path have equal keys, and others do not`() throws {
        let variation = try #require(learn("key-order, params=(\"utm\")", "http a /p"))
        let own = key("http a /p?b=2&a=1&utm=7", variation)
        for same in ["http a /p?a=1&b=2", "http a /p?%61=%31&utm&b=2", "http a /p?&b=2&&a=1&"] {
            #expect(key(same, variation) == own)
        }
        for other in [
            "http a /p?a=1", "http a /p?a=2&b=2", "http a /q?a=1&b=2", "http a /p?a=1&b=2\0\u{1}x", "http a /p",
        ] {
            #expect(key(other, variation) != own, "\(other)")
        }
        #expect(key("http a /p", variation) == key("http a /p?utm=1", variation))
        #expect(key("http a /p?utm=1\0\u{1}de", variation) == key("http a /p?\0\u{1}de", variation))
        // No URL can have it as its own key.
        #expect(own == "http a /p \(variation.number) a=1&b=2&")
    }

    @Test func `keys under different variations are never equal`() throws {
        let one = try #require(learn("params=(\"a\")", "http a /p"))
        let other = try #require(learn("params=(\"b\")", "http a /p"))
        #expect(key("http a /p?c=1", one) != key("http a /p?c=1", other))
    }

    @Test func `keys are equivalent if their URLs are`() {
        func areEquivalent(_ left: String, _ right: String, _ rule: String) -> Bool {
            SearchKey.areEquivalent(Array(left.utf8).span, Array(right.utf8).span, under: Self.rule(rule))
        }
        #expect(areEquivalent("http a /p?a=1", "http a /p?a=2", "except=()"))
        #expect(areEquivalent("http a /p?a=1", "http a /p", "except=()"))
        #expect(!areEquivalent("http a /p?a=1", "http a /q?a=1", "except=()"))
        #expect(!areEquivalent("http a /p?a=1\0\u{1}x", "http a /p?a=1\0\u{1}y", "except=()"))
        #expect(!areEquivalent("http a /p?a=1", "http a /p?a=2", "params=(\"b\")"))
        #expect(!areEquivalent("http a /p?a=1", "http a /p?%61=1", ""))
        #expect(areEquivalent("http a /p?a=1", "http a /p?a=1", ""))
    }
}
