import Bytes
import HTTPSemantics
import Testing

@testable import Storage

/// Walks of the whole store, while others use it.
@Suite struct StoreWalkTests {
    private static let many = 3_000

    /// One shard, in several stretches.
    private static func cache() -> Cache {
        let cache = Cache(memory: 64 << 20, shards: 1)
        for index in 0..<many { cache.put("a\(index)") }
        return cache
    }

    @Test func `look-ups do not wait while a walk compares keys`() {
        let cache = Self.cache()
        // On the same thread: where a lock were held, this would never return.
        let removed = cache.removeAll { cache.store.resource($0) != nil }
        #expect(removed == Self.many && cache.store.numbers.responses == 0 && cache.budget.used == 0)
    }

    @Test func `each key that stays is visited once, although the table grows and is rearranged meanwhile`() {
        let cache = Self.cache()
        var met: [String: Int] = [:]
        var others = 0
        let removed = cache.removeAll { key in
            let bytes = key.bytes
            let name = String(bytes.span)
            met[name, default: 0] += 1
            // Twice as many as there are, and of each hundred a few go again.
            if others < 2 * Self.many {
                for _ in 0..<4 {
                    others += 1
                    cache.put("b\(others)")
                }
                if others % 100 == 0 {
                    for gone in others - 8..<others - 2 { cache.store.remove(cache.key("b\(gone)")) }
                }
            }
            return name.hasPrefix("a") && (Int(name.dropFirst()) ?? 0) % 3 == 0
        }
        #expect((0..<Self.many).allSatisfy { met["a\($0)"] == 1 })
        #expect(met.values.allSatisfy { $0 == 1 })
        #expect(removed == Self.many / 3)
        #expect((0..<Self.many).allSatisfy { (cache.resource("a\($0)") == nil) == ($0 % 3 == 0) })
    }

    @Test(arguments: [0, 1, 15, 16, 511, 512, 513, 600])
    func `a walk reaches the end of a table, whatever its size and the length of a step`(count: Int) {
        let cache = Cache(memory: 64 << 20, shards: 1)
        for index in 0..<count { cache.put("\(index)") }
        #expect(cache.removeAll { _ in true } == count && cache.store.numbers.resources == 0)
    }

    @Test func `keys whose places wrap around the end of the table are visited too`() {
        // All in the last place, and so at the beginning.
        var table = ResourceTable()
        for index in 0..<10 {
            let hash = 0xFFFF_FFF0 + UInt64(index) | UInt64(index) << 40
            let key = CacheKey(hash: hash, bytes: ByteSlice("\(index)"))
            table.insert(CachedResource(CachedResource.Contents(), under: key, notesSlot: nil))
        }
        for stride in [1, 3, 100] {
            var (start, found): (UInt32?, [CachedResource]) = (0, [])
            while let from = start { start = table.stretch(from: from, stride: stride, into: &found) }
            #expect(found.map { String($0.key.span) }.sorted() == (0..<10).map { "\($0)" }, "\(stride)")
        }
    }

    @Test func `a walk goes round`() {
        let cache = Cache(memory: 64 << 20, shards: 4)
        for index in 0..<100 { cache.put("\(index)") }
        var walk = ResponseStore.Walk()
        var met: [String: Int] = [:]
        for shard in 1...8 {
            var isOver = false
            while !isOver {
                isOver = cache.store.step(along: &walk) { key in
                    let bytes = key.bytes
                    met[String(bytes.span), default: 0] += 1
                }
            }
            #expect(walk.isAtShard)
            if shard == 4 { #expect(met.count == 100 && met.values.allSatisfy { $0 == 1 }) }
        }
        #expect(met.count == 100 && met.values.allSatisfy { $0 == 2 })
    }
}
