import Bytes
import HTTPSemantics
import Repeatable
import Storage
import Testing

@Suite struct MemoryTests {
    @Test func `a full store keeps storing and never exceeds its memory`() {
        let cache = Cache(memory: 1 << 20)
        for number in 0..<5000 {
            #expect(cache.put("k\(number)", 1024) == .stored)
            #expect(cache.budget.used <= 1 << 20)
        }
        #expect(cache.store.numbers.evictedFromSmall > 3000)
        #expect(cache.budget.used > 900 << 10)
    }

    @Test func `used responses survive responses that are requested once`() {
        let cache = Cache(memory: 1 << 20)
        for number in 0..<50 { cache.put("hot \(number)", 2000) }
        for number in 0..<5000 {
            cache.put("cold \(number)", 2000)
            if number % 50 == 0 {
                for hot in 0..<50 { cache.resource("hot \(hot)")?.response(at: 0).noteUse() }
            }
        }
        let kept = (0..<50).filter { cache.resource("hot \($0)") != nil }
        #expect(kept.count == 50)
    }

    @Test func `clients that waited for one fetch count as hits`() {
        let cache = Cache(memory: 1 << 20)
        for number in 0..<20 { cache.put("awaited \(number)", 2000, popularity: number < 10 ? 5 : 0) }
        for number in 0..<600 { cache.put("cold \(number)", 2000) }
        let kept = (0..<20).map { cache.resource("awaited \($0)") != nil }
        #expect(kept == (0..<20).map { $0 < 10 })
    }

    @Test func `too large, incomplete and cut-off responses are refused`() throws {
        let cache = Cache(memory: 4 << 20) { $0.maxObjectSize = 10_000 }
        #expect(cache.put("large", 10_000) == .tooLarge)
        #expect(cache.put("small", 5000) == .stored)
        let open = GrowingBody(budget: cache.budget)
        #expect(cache.store(Sample.response(body: open), "open") == .incomplete)
        let failed = GrowingBody(budget: cache.budget)
        failed.fail()
        #expect(cache.store(Sample.response(body: failed), "failed") == .incomplete)
    }

    @Test func `a store makes room until nothing is left to evict`() {
        let cache = Cache(memory: 1 << 20) { $0.inUsePercent = 100 }
        for number in 0..<100 { cache.put("k\(number)", 8000) }
        #expect(cache.store.makeRoom(bytes: 500_000))
        #expect(cache.budget.limit - cache.budget.used >= 500_000)
        let held = 700_000
        #expect(cache.store.makeRoom(bytes: held) && cache.budget.reserve(held))
        #expect(!cache.store.makeRoom(bytes: 500_000))
        #expect(!cache.store.makeRoom(bytes: 2 << 20))
    }

    @Test func `bodies in flight cannot empty the store`() {
        let cache = Cache(memory: 1 << 20) { $0.inUsePercent = 25 }
        for number in 0..<200 { cache.put("k\(number)", 8000) }
        var reserved = 0
        while cache.store.makeRoom(bytes: 10_000), cache.budget.reserve(10_000) { reserved += 10_000 }
        #expect(reserved <= cache.settings.windowLimit)
        #expect(reserved > cache.settings.windowLimit - 20_000)
        #expect(cache.store.numbers.bytes > 600_000)
    }

    @Test func `an evicted body still being read keeps its bytes in the budget until its release`() throws {
        let cache = Cache(memory: 1 << 20)
        cache.put("a", 100_000)
        var reader = cache.resource("a")
        cache.store.removeAll()
        #expect(cache.budget.used == 100_000)
        #expect(reader?.count == 1)
        reader = nil
        #expect(cache.budget.used == 0)
    }

    /// Eviction would free none of their bytes.
    @Test func `a response is not evicted while being read`() throws {
        let cache = Cache(memory: 1 << 20) { $0.inUsePercent = 100 }
        for number in 0..<4 { cache.put("read \(number)", 100_000) }
        let bodies = (0..<4).compactMap { cache.resource("read \($0)")?.response(at: 0).looseBody }
        for body in bodies { body.beginReading() }
        for number in 0..<1000 { cache.put("k\(number)", 8000) }
        #expect((0..<4).allSatisfy { cache.resource("read \($0)") != nil })
        #expect(cache.store.numbers.evictedFromSmall > 900)
        for body in bodies { body.endReading() }
        for number in 0..<1000 { cache.put("l\(number)", 8000) }
        #expect((0..<4).allSatisfy { cache.resource("read \($0)") == nil })
    }

    @Test func `evictable responses make room, whatever is pinned in the fuller shard`() throws {
        let cache = Cache(memory: 16 << 20) {
            $0.shards = 2
            $0.inUsePercent = 100
        }
        cache.put("read", 8 << 20)
        let body = try #require(cache.resource("read")?.response(at: 0).looseBody)
        body.beginReading()
        for number in 0..<200 { cache.put("k\(number)", 100_000) }
        // Most of it rests in the shard that is less full.
        for number in 0..<200 {
            cache.put("new \(number)", 500_000)
            #expect(cache.resource("new \(number)") != nil)
        }
        body.endReading()
    }

    @Test func `a body being read is pinned, stored or not, and a stored one is evictable afterwards`() throws {
        let cache = Cache(memory: 1 << 20)
        cache.put("a", 100_000)
        let budget = cache.budget
        #expect(budget.resting == budget.used && budget.used > 100_000)
        var body = cache.resource("a")?.response(at: 0).looseBody
        body?.beginReading()
        body?.beginReading()
        // Nor does what the store spends on it.
        #expect(budget.resting == 0)
        body?.endReading()
        #expect(budget.resting == 0)
        body?.endReading()
        #expect(budget.resting == budget.used)
        body?.beginReading()
        cache.store.removeAll()
        #expect(budget.resting == 0 && budget.used == 100_000)
        body?.endReading()
        #expect(budget.resting == 0 && budget.used == 100_000)
        body = nil
        #expect(budget.used == 0)
    }

    @Test func `a joined body being read pins the bodies that lend their memory`() throws {
        let cache = Cache(memory: 4 << 20)
        let lenders = try (0..<2).map { _ in try #require(Sample.body(200_000, budget: cache.budget)) }
        let joined = GrowingBody(joining: lenders.map { ($0, 0..<200_000) }, budget: cache.budget)
        cache.store(Sample.response(body: joined), "joined")
        let overhead = cache.store.bytes - 400_000
        #expect(cache.budget.resting == 400_000 + overhead)
        joined.beginReading()
        #expect(cache.budget.resting == 0)
        joined.endReading()
        // Read before the join, by who was sent one of the parts.
        lenders[0].beginReading()
        #expect(joined.isRead)
        lenders[0].endReading()
        #expect(!joined.isRead)
        #expect(cache.budget.resting == 400_000 + overhead)
    }

    /// However many slow readers there are of what is stored.
    @Test func `bodies being read leave room for small entries and for windows`() throws {
        let cache = Cache(memory: 16 << 20)
        let (limit, reserve) = (cache.settings.inUseLimit, cache.settings.windowReserve)
        for number in 0..<20 { cache.put("page \(number)", 10_000) }
        var read: [GrowingBody] = []
        while cache.store.mayKeepWhole(1 << 20), let response = cache.response(1 << 20), let body = response.looseBody {
            body.beginReading()
            read.append(body)
            cache.store(response, "large \(read.count)")
        }
        #expect(cache.budget.inUse > cache.budget.limit - reserve - 2 << 20 && cache.budget.inUse > limit)
        #expect(cache.store.room >= reserve)
        #expect((0..<20).allSatisfy { cache.resource("page \($0)") != nil })
        // What comes is stored in the place of what rests, and of no more.
        let resting = cache.budget.resting
        for number in 0..<2000 { cache.put("new \(number)", 10_000) }
        #expect(cache.resource("new 1999") != nil)
        #expect(cache.budget.resting < resting + 2 * reserve)
        #expect(cache.store.room > reserve * 3 / 4 - 50_000)
        // Windows take the reserve, and evict nothing for more.
        while cache.store.makeRoom(bytes: 65_536), cache.budget.reserve(65_536) {}
        #expect(cache.resource("new 1999") != nil && cache.store.room < 65_536)
    }

    @Test(arguments: Rounds.seeds(8))
    func `the budget holds exactly the stored bytes, whatever happened`(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let cache = Cache(memory: 400_000, shards: 1 << (seed % 4))
        for _ in 0..<3000 {
            let key = "k\(Int.random(in: 0..<60, using: &random))"
            switch Int.random(in: 0..<12, using: &random) {
            case 0...4:
                let vary = ["Accept", "Accept-Language, Accept", nil].randomElement(using: &random)
                let request = [("Accept", "\(Int.random(in: 0..<5, using: &random))")]
                let size = Int.random(in: 0...20_000, using: &random)
                guard let response = cache.response(size, vary: vary ?? nil, request: request) else { continue }
                cache.store(response, key, popularity: Int.random(in: 0...4, using: &random))
            case 5:
                guard let response = cache.resource(key)?.responses.randomElement(using: &random) else { continue }
                let new = Sample.response(
                    body: response.bodyToFollow(), vary: "Accept", request: [("Accept", "0")], tag: "longer tag")
                _ = cache.store.freshen(
                    response, by: new, under: cache.key(key), isConfirmed: Bool.random(using: &random))
            case 6:
                let reasons: [NotSharedReason] = [.prohibited(.setCookie), .unlike, .range]
                cache.mark(key, until: Int64.random(in: 0...3, using: &random), reasons.randomElement(using: &random)!)
            case 7: cache.forgetMarkers(key)
            case 8:
                cache.learn(key, vary: "x-\(Int.random(in: 0..<20, using: &random))")
            case 9:
                if Bool.random(using: &random) { cache.invalidate(key) } else { _ = cache.remove(key) }
            case 10: cache.resource(key)?.responses.randomElement(using: &random)?.noteUse()
            default: _ = cache.store.makeRoom(bytes: Int.random(in: 0...100_000, using: &random))
            }
            #expect(cache.store.numbers.bytes == cache.budget.used)
            #expect(cache.budget.resting == cache.budget.used)
            #expect(cache.budget.used <= 400_000)
        }
        let responses = (0..<60).reduce(0) { $0 + (cache.resource("k\($1)")?.count ?? 0) }
        #expect(cache.store.numbers.responses == responses)
        #expect(cache.store.removeAll() == responses)
        #expect(cache.budget.used == 0)
        var empty = cache.store.numbers
        #expect(empty.resources == 0 && empty.responses == 0 && empty.markedKeys == 0 && empty.bytes == 0)
        // Also when it is emptied by eviction only.
        for number in 0..<50 { cache.put("k\(number)"); cache.mark("m\(number)") }
        #expect(cache.budget.reserve(cache.budget.limit - cache.budget.used))
        #expect(!cache.store.makeRoom(bytes: 1) || cache.budget.used < cache.budget.limit)
        empty = cache.store.numbers
        #expect(empty.bytes <= cache.budget.limit)
    }
}

@Suite struct PackedResponseTests {
    let cache = Cache()

    @Test func `a small response is stored with its key, fields and body unchanged`() throws {
        for size in [0, 1, 700, StoredResponse.packedBody, StoredResponse.packedBody + 1] {
            cache.store(try #require(cache.response(size, of: 0x61, tag: "tag \(size)")), "k\(size)")
            let resource = try #require(cache.resource("k\(size)"))
            let stored = resource.response(at: 0)
            let pieces = try #require(stored.pieces)
            #expect(String(resource.key) == "k\(size)")
            #expect(stored.tag == "tag \(size)")
            #expect(String(stored.fieldLines) == "Cache-Control: max-age=60\r\nX-Tag: tag \(size)\r\n")
            #expect(pieces.reduce("") { $0 + String($1) } == String(repeating: "a", count: size))
            #expect(stored.bodyLength == size && stored.bodyToFollow().completeLength == size)
            let output = ByteBuffer(capacity: 16)
            let part = size / 3..<size
            #expect(stored.appendPacked(part, to: output) == (size <= StoredResponse.packedBody))
            let expected = size <= StoredResponse.packedBody ? String(repeating: "a", count: part.count) : ""
            #expect(String(output.span) == expected)
        }
    }

    @Test func `a small response keeps nothing of its receive buffer`() throws {
        cache.put("a", 1000)
        #expect(cache.budget.used == cache.store.bytes)
        #expect(cache.budget.used < 1000 + 500)
        cache.store.removeAll()
        #expect(cache.budget.used == 0)
    }

    @Test func `a small response is freshened, varies and is evicted like any other`() throws {
        cache.put("a")
        let former = try #require(cache.resource("a")?.response(at: 0))
        let new = Sample.response(body: former.bodyToFollow(), vary: "Accept", request: [("Accept", "x")], tag: "new")
        let outcome = cache.store.freshen(former, by: new, under: cache.key("a"), isConfirmed: true)
        #expect(outcome == .stored)
        let freshened = try #require(cache.resource("a"))
        #expect(freshened.responses.map(\.tag) == ["new"] && freshened.knownVary == [Sample.rule("Accept")])
        #expect(freshened.response(at: 0).bodyLength == 100 && String(freshened.key) == "a")
        #expect(cache.budget.used == cache.store.bytes)
        cache.mark("a")
        cache.put("b")
        #expect(cache.store.makeRoom(bytes: cache.budget.limit / 2))
        #expect(cache.budget.reserve(cache.budget.limit / 2) && cache.store.numbers.responses == 2)
    }

    @Test func `one response is stored under several keys`() throws {
        let response = try #require(cache.response(tag: "same"))
        cache.store(response, "a")
        let stored = try #require(cache.resource("a")?.response(at: 0))
        cache.store(stored, "b")
        #expect(cache.remove("a") == 1)
        #expect(cache.resource("b")?.responses.map(\.tag) == ["same"])
        #expect(cache.remove("b") == 1)
        #expect(cache.store.numbers.responses == 0 && cache.store.bytes == 0)
    }
}
