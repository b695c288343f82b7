import Bytes
import HTTPSemantics
import Testing

@testable import Storage

/// RFC 9111 §4.1.
@Suite struct StoredVariantTests {
    let cache: Cache

    init() { cache = Cache() }

    private init(maxVariants: Int) { cache = Cache { $0.maxVariants = maxVariants } }

    private func store(_ tag: String, language: String?, vary: String? = "Accept-Language", date: Int64 = 1000) throws {
        let request = language.map { [("Accept-Language", $0)] } ?? []
        let outcome = cache.store(
            try #require(cache.response(vary: vary, request: request, date: date, tag: tag)), "a")
        #expect(outcome == .stored)
    }

    private func response(_ language: String?) -> StoredResponse? {
        let request = Sample.head(language.map { [("Accept-Language", $0)] } ?? [])
        return cache.resource("a")?.response(matching: request.view)
    }

    private func answer(_ language: String?) -> String? { response(language)?.tag }

    @Test func `each variant serves the requests that match it`() throws {
        try store("german", language: "de")
        try store("english", language: "en")
        try store("none", language: nil)
        #expect(answer("de") == "german")
        #expect(answer("en") == "english")
        #expect(answer(nil) == "none")
        #expect(answer("fr") == nil)
        #expect(cache.resource("a")?.count == 3)
    }

    @Test func `a variant is replaced without the others`() throws {
        try store("german", language: "de")
        try store("english", language: "en")
        try store("newer german", language: "de")
        #expect(answer("de") == "newer german")
        #expect(answer("en") == "english")
        #expect(cache.resource("a")?.count == 2)
    }

    @Test func `a response without Vary serves only requests that match no variant`() throws {
        try store("german", language: "de", date: 1000)
        try store("default", language: nil, vary: nil, date: 2000)
        #expect(answer("de") == "german")
        #expect(answer("fr") == "default")
    }

    @Test func `of several matching variants, the one with the latest Date is used`() throws {
        try store("newer", language: "de", vary: "Accept-Language, Accept", date: 2000)
        try store("older", language: "de", date: 1000)
        #expect(cache.resource("a")?.responses.map(\.tag) == ["newer", "older"])
        #expect(answer("de") == "newer")
    }

    @Test func `a coded response without Vary is preferred for requests that accept it, whatever its date`() throws {
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

    @Test func `a resource has a bounded number of variants, and keeps the one just stored`() throws {
        let few = Self(maxVariants: 64)
        // The newest by their dates come first.
        for number in 0..<100 {
            try few.store("\(number)", language: "l\(number)", date: Int64(1000 - number))
            #expect(few.answer("l\(number)") == "\(number)")
        }
        #expect(few.cache.resource("a")?.count == 64)
        #expect(few.answer("l36") == "36" && few.answer("l35") == nil)
        #expect(few.cache.store.numbers.responses == 64 && few.cache.store.numbers.evictedFromSmall == 36)
    }

    @Test func `used variants stay while hundreds are stored that are not requested again`() throws {
        let few = Self(maxVariants: 10)
        for number in 0..<3 { try few.store("hot \(number)", language: "h\(number)") }
        for number in 0..<300 {
            if number % 50 == 0 { for hot in 0..<3 { few.response("h\(hot)")?.noteUse() } }
            try few.store("\(number)", language: "l\(number)")
        }
        for hot in 0..<3 { #expect(few.answer("h\(hot)") == "hot \(hot)") }
    }

    @Test func `variants that were used once give way to variants that are used now`() throws {
        let few = Self(maxVariants: 10)
        for number in 0..<10 {
            try few.store("old \(number)", language: "o\(number)")
            for _ in 0..<3 { few.response("o\(number)")?.noteUse() }
        }
        for _ in 0..<10 {
            for number in 0..<8 {
                if few.answer("n\(number)") == nil { try few.store("new \(number)", language: "n\(number)") }
                few.response("n\(number)")?.noteUse()
            }
        }
        for number in 0..<8 { #expect(few.answer("n\(number)") == "new \(number)") }
    }

    @Test func `of more Vary rules than are remembered, those used last are kept`() throws {
        for number in 0..<20 { try store("\(number)", language: "de", vary: "Accept-Language, x-\(number)") }
        #expect(cache.resource("a")?.count == 8 && cache.resource("a")?.knownVary.count == 8)
        #expect(answer("de") == "19")
        #expect(cache.store.numbers.responses == 8)
        cache.learn("a", vary: "Accept")
        #expect(cache.resource("a")?.count == 7)
    }

    @Test func `a Vary rule matches the same among many variants as among few`() throws {
        for number in 0..<10 {
            try store("\(number)", language: "l\(number)", date: Int64(number))
            if number == 2 { try store("default", language: nil, vary: nil, date: 5000) }
            if number == 3 { try store("both", language: "l3", vary: "Accept-Language, Accept", date: 4000) }
            if number == 4 { try store("older", language: "l4", vary: "Accept-Language, Accept", date: 1) }
            #expect(answer("l\(number)") == (number == 3 ? "both" : "\(number)"))
            #expect(answer("none") == (number < 2 ? nil : "default"))
        }
        #expect(answer("l3") == "both" && answer("l4") == "4" && answer("l2") == "2" && answer(nil) == "default")
    }

    @Test(arguments: [1, 300, 4000])
    func `the right one of many variants is found, however long and similar their values`(_ length: Int) throws {
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

    @Test func `many variants are compared with a request's values that are written once`() throws {
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

    @Test func `a Vary rule is known before any response is stored`() throws {
        let rule = Sample.rule("Accept-Language")
        cache.learn("a", vary: "Accept-Language")
        #expect(cache.resource("a")?.knownVary == [rule])
        #expect(cache.resource("a")?.count == 0)
        try store("german", language: "de")
        #expect(cache.resource("a")?.knownVary == [rule])
    }

    @Test func `the number of rules of a resource is limited, the latest first`() throws {
        for number in 0..<20 {
            cache.learn("a", vary: "x-\(number)")
        }
        let known = try #require(cache.resource("a")?.knownVary)
        #expect(known.count == 8)
        #expect(String(known[0].name(at: 0)) == "x-19")
    }
}
