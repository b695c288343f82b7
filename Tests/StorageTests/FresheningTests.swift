import Bytes
import HTTPSemantics
import Storage
import Testing

@Suite struct FresheningTests {
    let cache = Cache()

    private func freshen(
        _ former: StoredResponse, _ new: StoredResponse, isConfirmed: Bool = true
    ) -> StoreOutcome {
        cache.store.freshen(former, by: new, under: cache.key("a"), isConfirmed: isConfirmed)
    }

    @Test func `a freshened response has the same body, and its bytes count once`() throws {
        let former = try #require(cache.response(5000, tag: "former"))
        cache.store(former, "a")
        former.noteUse()
        let used = cache.budget.used
        let new = Sample.response(body: former.bodyToFollow(), tag: "newer!")
        #expect(freshen(former, new) == .stored)
        let stored = try #require(cache.resource("a")?.response(at: 0))
        #expect(stored.tag == "newer!" && stored.bodyToFollow() === former.bodyToFollow())
        #expect(stored.frequency == 1)
        #expect(cache.budget.used == used)
    }

    @Test func `a response that was replaced or removed meanwhile is not stored again`() throws {
        cache.put("a")
        let former = try #require(cache.resource("a")?.response(at: 0))
        cache.store(try #require(cache.response(tag: "other")), "a")
        #expect(freshen(former, Sample.response(body: former.bodyToFollow())) == .gone)
        #expect(cache.resource("a")?.responses.map(\.tag) == ["other"])
        cache.store.removeAll()
        #expect(freshen(former, Sample.response(body: former.bodyToFollow())) == .gone)
    }

    @Test func `a freshened response that serves another's requests replaces it`() throws {
        cache.store(try #require(cache.response(vary: "Accept", request: [("Accept", "x")], tag: "one")), "a")
        cache.store(try #require(cache.response(tag: "two")), "a")
        let german = try #require(cache.resource("a")?.responses.first { $0.tag == "one" })
        #expect(freshen(german, Sample.response(body: german.bodyToFollow(), tag: "three")) == .stored)
        #expect(cache.resource("a")?.responses.map(\.tag) == ["three"])
    }

    @Test(arguments: [(1, ["two", "one"]), (3, ["one", "two"])])
    func `of equal dates the later response comes first, also after one was freshened`(
        _ responseTime: Int, _ order: [String]
    ) throws {
        func response(_ tag: String, vary: String, responseTime: Int64) throws -> StoredResponse {
            let body = try #require(Sample.body(10, budget: cache.budget))
            return Sample.response(body: body, vary: vary, responseTime: responseTime, tag: tag)
        }
        let one = try response("one", vary: "A", responseTime: 1)
        cache.store(one, "a")
        cache.store(try response("two", vary: "A, B", responseTime: 2), "a")
        #expect(cache.resource("a")?.responses.map(\.tag) == ["two", "one"])
        let former = try #require(cache.resource("a")?.responses.last)
        let again = Sample.response(
            body: former.bodyToFollow(), vary: "A", responseTime: Int64(responseTime), tag: "one")
        #expect(freshen(former, again) == .stored)
        #expect(cache.resource("a")?.responses.map(\.tag) == order)
    }

    @Test(arguments: [true, false]) func `the marker is removed only if the stored response was confirmed`(
        _ isConfirmed: Bool
    ) throws {
        cache.put("a")
        cache.mark("a")
        let former = try #require(cache.resource("a")?.response(at: 0))
        #expect(freshen(former, Sample.response(body: former.bodyToFollow()), isConfirmed: isConfirmed) == .stored)
        #expect(cache.isMarked("a") != isConfirmed)
    }

    @Test func `one that is dropped does not take others with it`() throws {
        for value in ["x", "y"] {
            cache.store(try #require(cache.response(vary: "Accept", request: [("Accept", value)], tag: value)), "a")
        }
        let former = try #require(cache.resource("a")?.responses.first { $0.tag == "x" })
        for _ in 1...2 { cache.store.drop(former, of: cache.key("a")) }
        #expect(cache.resource("a")?.responses.map(\.tag) == ["y"])
    }
}
