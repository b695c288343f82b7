import Bytes
import HTTPSemantics
import Repeatable
import Storage
import Testing

/// Parts of representations in the store (RFC 9111 §3.3, §3.4).
@Suite struct StoredPartsTests {
    let cache: Cache

    init() { self.init(cache: Cache()) }

    /// A response that has `range` of a representation, each byte the lower eight bits of its place.
    private func part(
        _ range: Range<Int>, of length: Int? = 1_000, tag: String = "\"a\"", date: Int64 = 1_000_000,
        responseTime: Int64 = 0,
        vary: [(String, String)] = []
    ) throws -> StoredResponse {
        let body = GrowingBody(budget: cache.budget, expectedLength: range.count)
        let content = Self.content(range)
        let taken = body.append(content.span)
        try #require(taken == .accepted)
        body.complete()
        let head = Sample.head(
            [("Cache-Control", "max-age=60"), ("ETag", tag), ("X-Tag", "\(date)")]
                + (vary.isEmpty ? [] : [("Vary", vary[0].0)]))
        let moment = Moment(monotonic: responseTime, wall: date)
        let facts = ResponseFacts(
            status: .ok, fields: head.view, requestTime: moment, responseTime: moment, policy: CachingPolicy())
        let rule = VaryRule(head.view) ?? .none
        return StoredResponse(
            head: head, facts: facts, body: GrowingBody(joining: [], budget: cache.budget),
            parts: StoredParts([StoredParts.Run(range, body)], length: length),
            variant: Variant(for: Sample.head(vary).view, under: rule))
    }

    @discardableResult
    private func store(
        _ response: StoredResponse, bringing range: Range<Int>? = nil, requestTime: Int64 = .max,
        unless wasInvalidated: () -> Bool = { false }
    ) -> StoreOutcome {
        cache.store.storeParts(
            response, bringing: range ?? response.parts?.runs[0].range ?? 0..<0, under: cache.key("k"),
            requestTime: Moment(monotonic: requestTime, wall: 0), unless: wasInvalidated)
    }

    private func stored(_ fields: [(String, String)] = []) -> StoredResponse? {
        let asked = Sample.head(fields)
        return cache.resource("k")?.partial(matching: asked.view)
    }

    private func ranges(_ fields: [(String, String)] = []) -> [Range<Int>] {
        stored(fields)?.parts?.runs.map(\.range) ?? []
    }

    private static func content(_ range: Range<Int>) -> [UInt8] { range.map { UInt8(truncatingIfNeeded: $0) } }

    private func total() -> Int { ranges().reduce(0) { $0 + $1.count } }

    private func bytes(_ body: GrowingBody) -> [UInt8] {
        var all: [UInt8] = []
        for piece in body.completePieces ?? ShortList() {
            let span = piece.span
            for index in 0..<span.count { all.append(span[index]) }
        }
        return all
    }

    @Test func `parts are not among the variants`() throws {
        #expect(try store(part(0..<10)) == .stored)
        let resource = try #require(cache.resource("k"))
        let none = Sample.head([])
        let found = resource.response(matching: none.view)
        #expect(resource.count == 0 && found == nil && stored() != nil)
    }

    static let sequences: [([Range<Int>], [Range<Int>])] = [
        ([0..<10, 20..<30], [0..<10, 20..<30]), ([20..<30, 0..<10], [0..<10, 20..<30]), ([0..<10, 10..<20], [0..<20]),
        ([10..<20, 0..<10], [0..<20]), ([0..<20, 10..<30], [0..<30]), ([0..<30, 10..<20], [0..<30]),
        ([10..<20, 0..<30], [0..<30]),
        ([0..<10, 20..<30, 5..<25], [0..<30]), ([0..<10, 20..<30, 10..<20], [0..<30]), ([5..<15, 5..<15], [5..<15]),
        ([0..<5, 10..<15, 20..<25, 3..<22], [0..<25]),
    ]

    @Test(arguments: sequences)
    func `parts of one tag combine byte for byte`(added: [Range<Int>], expected: [Range<Int>]) throws {
        for range in added { #expect(try store(part(range)) == .stored) }
        #expect(ranges() == expected)
        for run in stored()?.parts?.runs ?? [] {
            let content = bytes(run.body)
            #expect(content == Self.content(run.range))
        }
    }

    @Test func `a part with another tag or length replaces the stored parts`() throws {
        store(try part(0..<10))
        store(try part(20..<30, tag: "\"b\"", date: 1_000_001))
        #expect(ranges() == [20..<30])
        store(try part(0..<10, of: 999, tag: "\"b\"", date: 1_000_002))
        #expect(ranges() == [0..<10])
    }

    @Test func `parts without a gap become an ordinary response`() throws {
        store(try part(500..<1_000))
        store(try part(0..<500))
        let none = Sample.head([])
        let found = cache.resource("k")?.response(matching: none.view)
        let whole = try #require(found)
        #expect(whole.parts == nil && whole.bodyLength == 1_000 && stored() == nil)
        #expect(bytes(whole.bodyToFollow()) == Self.content(0..<1_000))
        #expect(cache.store.numbers.responses == 1)
    }

    @Test func `a full response replaces the parts, and no part is stored beside it`() throws {
        store(try part(0..<10))
        cache.put("k")
        #expect(stored() == nil && cache.resource("k")?.count == 1)
        #expect(try store(part(0..<10)) == .outdated)
        #expect(cache.store.numbers.responses == 1)
    }

    @Test func `the fields are those of the newest part, whichever is stored last`() throws {
        store(try part(0..<10, date: 1_000_009, responseTime: 9))
        store(try part(20..<30, date: 1_000_001, responseTime: 1))
        #expect(ranges().count == 2 && stored()?.tag == "1000009")
    }

    @Test func `an older part of another tag does not replace newer parts`() throws {
        store(try part(0..<10, tag: "\"b\"", date: 1_000_009, responseTime: 9))
        #expect(try store(part(20..<30, tag: "\"a\"", date: 1_000_001, responseTime: 1), requestTime: 5) == .outdated)
        #expect(ranges() == [0..<10])
    }

    @Test func `variants have parts of their own`() throws {
        store(try part(0..<10, vary: [("Accept", "x")]))
        store(try part(20..<30, vary: [("Accept", "y")]))
        #expect(ranges([("Accept", "x")]) == [0..<10])
        #expect(ranges([("Accept", "y")]) == [20..<30])
        #expect(stored([("Accept", "z")]) == nil)
    }

    @Test func `the number of runs is bounded, and the newest run stays`() throws {
        for index in 0..<StoredParts.mostRuns { store(try part(index * 20..<index * 20 + 10)) }
        store(try part(901..<902))
        #expect(ranges().count == StoredParts.mostRuns && ranges().last == 901..<902)
    }

    @Test func `parts together do not exceed the largest object`() throws {
        let cache = Cache { $0.maxObjectSize = 2_000 }
        let parts = StoredPartsTests(cache: cache)
        for index in 0..<6 {
            #expect(try parts.store(parts.part(index * 500..<index * 500 + 400, of: 100_000)) == .stored)
            #expect(parts.total() <= 2_000)
            #expect(parts.ranges().contains(index * 500..<index * 500 + 400))
        }
    }

    @Test func `parts read from end to end start again at the size limit`() throws {
        let parts = StoredPartsTests(cache: Cache { $0.maxObjectSize = 2_000 })
        for start in stride(from: 0, to: 6_000, by: 500) {
            #expect(try parts.store(parts.part(start..<start + 500, of: 100_000)) == .stored)
            #expect(parts.ranges().last?.upperBound == start + 500)
            #expect((parts.ranges().last?.count ?? 0) <= 2_000)
        }
    }

    @Test func `invalidation and removal concern parts, too`() throws {
        store(try part(0..<10))
        #expect(stored() != nil)
        cache.invalidate("k")
        #expect(stored() == nil)
        #expect(try store(part(0..<10), unless: { true }) == .outdated)
        store(try part(0..<10))
        #expect(cache.remove("k") == 1 && cache.resource("k") == nil)
        store(try part(0..<10))
        #expect(cache.store.removeAll() == 1 && cache.resource("k") == nil)
        store(try part(0..<10))
        let former = try #require(stored())
        cache.store.drop(former, of: cache.key("k"))
        #expect(stored() == nil)
    }

    @Test func `freshened parts replace other parts of the same variant`() throws {
        store(try part(0..<10, vary: [("Accept", "x")]))
        store(try part(20..<30, vary: [("Accept", "y")]))
        let former = try #require(stored([("Accept", "x")]))
        let new = try part(0..<10, vary: [("Accept", "y")])
        let outcome = cache.store.freshen(former, by: new, under: cache.key("k"), isConfirmed: true)
        #expect(outcome == .stored && ranges([("Accept", "y")]) == [0..<10])
        #expect(cache.resource("k")?.partialResponses.count == 1)
        cache.store.removeAll()
        #expect(cache.store.bytes == 0)
    }

    @Test func `the marker of a response too large to store is kept beside the parts`() throws {
        cache.mark("k", .range)
        store(try part(0..<10))
        let now = Moment(monotonic: 0, wall: 0)
        #expect(cache.resource("k")?.advice(at: now, hasAuthorization: false) == .askForPart)
    }

    @Test func `parts are evicted like other entries, and every byte is returned`() throws {
        for index in 0..<400 {
            let key = "k\(index)"
            guard cache.store.makeRoom(bytes: 100_000) else { continue }
            let response = try part(0..<100_000, of: 1_000_000)
            _ = cache.store.storeParts(
                response, bringing: 0..<100_000, under: cache.key(key), requestTime: Sample.never, unless: { false })
        }
        #expect(cache.budget.used <= cache.budget.limit)
        #expect(cache.store.numbers.evictedFromSmall + cache.store.numbers.evictedFromMain > 200)
        cache.store.removeAll()
        #expect(cache.budget.used == 0 && cache.store.bytes == 0)
    }

    @Test func `many combined and replaced parts leave no byte behind`() throws {
        var generator = SeededGenerator(ofTest: 7)
        for _ in 0..<500 * Rounds.count {
            let start = Int.random(in: 0..<900, using: &generator)
            let range = start..<start + Int.random(in: 1...100, using: &generator)
            store(try part(range, tag: Int.random(in: 0..<20, using: &generator) == 0 ? "\"b\"" : "\"a\""))
            if Int.random(in: 0..<50, using: &generator) == 0 { cache.invalidate("k") }
        }
        cache.store.removeAll()
        #expect(cache.budget.used == 0 && cache.store.bytes == 0)
    }
}

extension StoredPartsTests {
    init(cache: Cache) { self.cache = cache }

    /// Stores what `make` gives with more and more memory left, from nothing on.
    private func storeAtTheCeiling(_ make: () throws -> StoredResponse, after first: () throws -> Void) throws {
        var outcomes: Set<StoreOutcome> = []
        for free in stride(from: 0, to: 10_000, by: 100) {
            try first()
            let response = try make()
            let held = cache.budget.limit - cache.budget.used - free
            let isHeld = cache.budget.reserve(held)
            try #require(isHeld)
            outcomes.insert(store(response))
            #expect(cache.budget.used <= cache.budget.limit, "\(free) bytes were free")
            cache.budget.release(held)
            cache.store.removeAll()
        }
        #expect(outcomes.contains(.stored))
    }

    @Test func `the memory limit holds if a part is a small full response`() throws {
        try storeAtTheCeiling({ try part(0..<2_000, of: 2_000) }, after: {})
        try storeAtTheCeiling({ try part(1_000..<2_000, of: 2_000) }, after: { store(try part(0..<1_000, of: 2_000)) })
    }

    @Test func `the memory limit holds if many parts share memory with a stored one`() throws {
        let cuts = try (0..<6).map { try part($0 * 100_000 + 20_000..<$0 * 100_000 + 60_000, of: 1_000_000) }
        let together = cuts.dropFirst().reduce(cuts[0].parts) { parts, cut in
            cut.parts.flatMap { parts?.adding($0.runs[0], length: nil, budget: cache.budget) }
        }
        let first = cuts[0]
        let response = StoredResponse(
            head: first.head, facts: first.facts, body: GrowingBody(joining: [], budget: cache.budget), parts: together)
        try storeAtTheCeiling({ response }, after: { store(try part(0..<700_000, of: 1_000_000)) })
    }

    @Test(arguments: [false, true])
    func `a body fetched byte by byte is kept in few pieces`(_ isBackwards: Bool) throws {
        let places = isBackwards ? Array((1..<5_000).reversed()) : Array(0..<4_999)
        for place in places { store(try part(place..<place + 1, of: 5_000)) }
        let parts = try #require(stored()?.parts)
        #expect(parts.runs.count == 1)
        let pieces = try #require(parts.runs[0].body.completePieces)
        #expect(pieces.count < 20)
        #expect(bytes(parts.runs[0].body) == Self.content(parts.runs[0].range))
        #expect(parts.retained < 2 * 5_000)
    }

    @Test func `overlapping bytes are not held several times`() throws {
        for start in 0..<30 { store(try part(start..<start + 100_000, of: 200_000)) }
        let parts = try #require(stored()?.parts)
        #expect(ranges() == [0..<100_029])
        #expect(bytes(parts.runs[0].body) == Self.content(0..<100_029))
        #expect(parts.retained < 2 * 100_029)
    }
}
