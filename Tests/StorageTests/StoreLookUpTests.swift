import Bytes
import HTTPSemantics
import Repeatable
import Storage
import Testing

@Suite struct StoreLookUpTests {
    let cache = Cache()

    @Test func `a stored response is found under its key and no other`() throws {
        #expect(cache.put("a") == .stored)
        #expect(cache.resource("a")?.responses.map(\.tag) == ["a"])
        #expect(cache.resource("b") == nil)
    }

    @Test func `keys with the same hash are not confused`() throws {
        for key in ["a", "b", "c", "aa"] {
            cache.store(try #require(cache.response(tag: key)), key, collides: true)
        }
        for key in ["a", "b", "c", "aa"] {
            #expect(cache.resource(key, collides: true)?.responses.map(\.tag) == [key])
        }
        let removed = cache.store.remove(cache.key("b", collides: true))
        #expect(removed == 1)
        #expect(cache.resource("b", collides: true) == nil)
        #expect(cache.resource("c", collides: true)?.responses.map(\.tag) == ["c"])
    }

    @Test func `a response replaces the earlier one of the same variant`() throws {
        cache.store(try #require(cache.response(tag: "old")), "a")
        cache.store(try #require(cache.response(tag: "new")), "a")
        #expect(cache.resource("a")?.responses.map(\.tag) == ["new"])
        #expect(cache.store.numbers.responses == 1)
    }

    @Test func `a snapshot does not change while being read`() throws {
        cache.put("a")
        let snapshot = try #require(cache.resource("a"))
        cache.store.removeAll()
        #expect(snapshot.responses.map(\.tag) == ["a"])
        #expect(cache.resource("a") == nil)
    }

    @Test func `the index finds the same entries as a dictionary`() throws {
        var random = SeededGenerator(ofTest: 7)
        // Few distinct hashes: long probes and many collisions.
        func hash(_ key: String) -> UInt64 {
            UInt64(key.utf8.reduce(0) { $0 &* 31 &+ UInt64($1) } % 13) &* 0x2000_0000_0000_0001
        }
        var model: [String: String] = [:]
        for step in 0..<4000 * Rounds.count {
            let key = "k\(Int.random(in: 0..<200, using: &random))"
            let cacheKey = CacheKey(hash: hash(key), bytes: ByteSlice(key))
            switch Int.random(in: 0..<4, using: &random) {
            case 0, 1:
                let response = try #require(cache.response(8, tag: "\(step)"))
                let outcome = cache.store.store(
                    response, under: cacheKey, requestTime: Sample.never, unless: { false })
                #expect(outcome == .stored)
                model[key] = "\(step)"
            case 2:
                let removed = cache.store.remove(cacheKey)
                #expect(removed == (model.removeValue(forKey: key) == nil ? 0 : 1))
            default:
                let found = cache.store.resource(cacheKey)
                #expect(found?.responses.map(\.tag) == model[key].map { [$0] })
                #expect(found.map { String($0.key) } == (model[key] == nil ? nil : key))
            }
            #expect(cache.store.numbers.resources == model.count)
        }
    }
}
