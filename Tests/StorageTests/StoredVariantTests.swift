import Bytes
import HTTPSemantics
import Testing

@testable import Storage

/// RFC 9111 §4.1.
@Suite struct StoredVariantTests {
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

    @Test func `what is encoded without a word in Vary goes first for those who accept it, whatever its date`() throws {
        let request = [("Accept-Encoding", "gzip"), ("Accept-Language", "de")]
        for (tag, fields, date) in [
            ("encoded", [("Content-Encoding", "gzip")], 1000), ("german", [("Vary", "Accept-Language")], 3000),
            ("plain", [], 2000),
        ] as [(String, [(String, String)], Int64)] {
            cache.store(try #require(cache.response(fields: fields, request: request, date: date, tag: tag)), "a")
        }
        for (asked, expected) in [
            (request, "encoded"), ([("Accept-Encoding", "br, *")], "encoded"), ([("Accept-Language", "de")], "german"),
            ([("Accept-Encoding", "br")], "plain"), ([], "plain"),
        ] as [([(String, String)], String)] {
            let head = Sample.head(asked)
            #expect(cache.resource("a")?.response(matching: head.view)?.tag == expected)
        }
    }

    @Test func `one resource has a bounded number of variants, and the oldest goes`() throws {
        for number in 0..<100 { try store("\(number)", language: "l\(number)", date: Int64(number)) }
        #expect(cache.resource("a")?.count == 64)
        #expect(answer("l99") == "99" && answer("l35") == nil)
        #expect(cache.store.numbers.responses == 64)
    }

    @Test(arguments: [1, 300, 4000])
    func `the right one of many is found, however long and alike their values are`(_ length: Int) throws {
        let long = String(repeating: "x", count: length)
        for number in 0..<60 {
            try store("\(number)", language: "\(long)\(number)", date: Int64(number))
            // Another rule in between.
            if number % 20 == 10 {
                try store(
                    "other \(number)", language: "\(long)y\(number)", vary: "Accept-Language, Accept",
                    date: Int64(number))
            }
        }
        #expect(cache.resource("a")?.count == 63)
        for number in 0..<60 { #expect(answer("\(long)\(number)") == "\(number)") }
        #expect(answer("\(long)y10") == "other 10" && answer("\(long)y50") == "other 50")
        #expect(answer("\(long)60") == nil && answer(nil) == nil)
        let asked = Sample.head([("Accept-Language", "\(long)7")])
        #expect(cache.resource("a")?.responses(matching: asked.view).map(\.tag) == ["7"])
    }

    @Test func `many variants are compared with what the request says once`() throws {
        let long = String(repeating: "x", count: 2000)
        let asked = Sample.head([("Accept-Language", "\(long)0")])
        for (value, first) in [(long, 2), ("x", 5)] {
            var search = VariantSearch()
            for number in 1...8 {
                let request = [("Accept-Language", "\(value)\(number)")]
                let response = try #require(cache.response(vary: "Accept-Language", request: request))
                let isFound = search.finds(response, for: asked.view)
                #expect(!isFound)
                #expect((search.written != nil) == (number >= first))
            }
        }
    }

    @Test func `by what a resource varies is known while nothing is stored yet`() throws {
        let rule = Sample.rule("Accept-Language")
        cache.learn("a", vary: "Accept-Language")
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
