import Bytes
import HTTPSemantics
import Repeatable
import Storage
import Testing

@Suite struct LookUpTests {
    let cache = Cache()

    @Test func `what is stored is found under its key and no other`() throws {
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
        let removed = cache.store.remove(hash: 42, key: Array("b".utf8).span)
        #expect(removed == 1)
        #expect(cache.resource("b", collides: true) == nil)
        #expect(cache.resource("c", collides: true)?.responses.map(\.tag) == ["c"])
    }

    @Test func `the same variant takes the place of the one before`() throws {
        cache.store(try #require(cache.response(tag: "old")), "a")
        cache.store(try #require(cache.response(tag: "new")), "a")
        #expect(cache.resource("a")?.responses.map(\.tag) == ["new"])
        #expect(cache.store.numbers.responses == 1)
    }

    @Test func `a snapshot does not change under its reader`() throws {
        cache.put("a")
        let snapshot = try #require(cache.resource("a"))
        cache.store.removeAll()
        #expect(snapshot.responses.map(\.tag) == ["a"])
        #expect(cache.resource("a") == nil)
    }

    @Test func `the index holds what a dictionary would`() throws {
        var random = SeededGenerator(seed: 7)
        // Few distinct hashes: long probes and many collisions.
        func hash(_ key: String) -> UInt64 { UInt64(key.utf8.reduce(0) { $0 &* 31 &+ UInt64($1) } % 13) &* 0x2000_0000_0000_0001 }
        var model: [String: String] = [:]
        for step in 0..<4000 {
            let key = "k\(Int.random(in: 0..<200, using: &random))"
            let bytes = Array(key.utf8)
            switch Int.random(in: 0..<4, using: &random) {
            case 0, 1:
                let response = try #require(cache.response(8, tag: "\(step)"))
                let generation = cache.store.generation(hash: hash(key))
                let outcome = cache.store.store(response, hash: hash(key), key: bytes.span, generation: generation)
                #expect(outcome == .stored)
                model[key] = "\(step)"
            case 2:
                let removed = cache.store.remove(hash: hash(key), key: bytes.span)
                #expect(removed == (model.removeValue(forKey: key) == nil ? 0 : 1))
            default:
                let found = cache.store.resource(hash: hash(key), key: bytes.span)
                #expect(found?.responses.map(\.tag) == model[key].map { [$0] })
                #expect(found.map { String($0.key) } == (model[key] == nil ? nil : key))
            }
            #expect(cache.store.numbers.resources == model.count)
        }
    }
}

/// RFC 9111 §4.1.
@Suite struct VariantTests {
    let cache = Cache()

    private func store(_ tag: String, language: String?, vary: String? = "Accept-Language", date: Int64 = 1000) throws {
        let request = language.map { [("Accept-Language", $0)] } ?? []
        cache.store(try #require(cache.response(vary: vary, request: request, date: date, tag: tag)), "a")
    }

    private func answer(_ language: String?) -> String? {
        let request = Sample.head(language.map { [("Accept-Language", $0)] } ?? [])
        return cache.resource("a")?.response(matching: request.view)?.tag
    }

    @Test func `each variant answers the requests it is for`() throws {
        try store("german", language: "de")
        try store("english", language: "en")
        try store("none", language: nil)
        #expect(answer("de") == "german")
        #expect(answer("en") == "english")
        #expect(answer(nil) == "none")
        #expect(answer("fr") == nil)
        #expect(cache.resource("a")?.count == 3)
    }

    @Test func `a variant is replaced alone`() throws {
        try store("german", language: "de")
        try store("english", language: "en")
        try store("newer german", language: "de")
        #expect(answer("de") == "newer german")
        #expect(answer("en") == "english")
        #expect(cache.resource("a")?.count == 2)
    }

    @Test func `a response without Vary answers only whom no variant answers`() throws {
        try store("german", language: "de", date: 1000)
        try store("default", language: nil, vary: nil, date: 2000)
        #expect(answer("de") == "german")
        #expect(answer("fr") == "default")
    }

    @Test func `of several that match the one with the latest Date is taken`() throws {
        try store("newer", language: "de", vary: "Accept-Language, Accept", date: 2000)
        try store("older", language: "de", date: 1000)
        #expect(cache.resource("a")?.responses.map(\.tag) == ["newer", "older"])
        #expect(answer("de") == "newer")
    }

    @Test func `one resource has a bounded number of variants, and the oldest goes`() throws {
        for number in 0..<100 { try store("\(number)", language: "l\(number)", date: Int64(number)) }
        #expect(cache.resource("a")?.count == 64)
        #expect(answer("l99") == "99" && answer("l35") == nil)
        #expect(cache.store.numbers.responses == 64)
    }

    @Test func `by what a resource varies is known while nothing is stored yet`() throws {
        let rule = Sample.rule("Accept-Language")
        #expect(cache.learn("a", vary: "Accept-Language"))
        #expect(cache.resource("a")?.knownVary == [rule])
        #expect(cache.resource("a")?.count == 0)
        try store("german", language: "de")
        #expect(cache.resource("a")?.knownVary == [rule])
    }

    @Test func `only so many rules of one resource are remembered, the latest first`() throws {
        for number in 0..<20 {
            cache.learn("a", vary: "x-\(number)")
        }
        let known = try #require(cache.resource("a")?.knownVary)
        #expect(known.count == 8)
        #expect(String(known[0].name(at: 0)) == "x-19")
    }
}
