import Bytes
import HTTPSemantics
import Repeatable
import Testing

@testable import Storage

/// Purges that share one walk of the store.
struct PurgeWalkTests {
    private static func below(_ prefixes: String...) -> PurgedURLs {
        PurgedURLs(below: prefixes.map { ByteSlice($0) })
    }

    /// Steps until `condition` holds.
    /// - Returns: what each purge that ended dropped, by its number, and how many steps it took.
    private static func run(
        _ walk: inout PurgeWalk, _ cache: Cache, until condition: (PurgeWalk) -> Bool = \.isEmpty
    ) -> (dropped: [Int: Int], steps: Int) {
        var (dropped, steps) = ([Int: Int](), 0)
        while !condition(walk) {
            steps += 1
            for ended in walk.step(through: cache.store, purge: { key, _ in cache.store.remove(key) }) {
                dropped[ended.number] = ended.purged
            }
        }
        return (dropped, steps)
    }

    @Test func `purges that begin together cost one walk, and each counts what it matched`() {
        let cache = Cache(memory: 64 << 20, shards: 8)
        for page in 0..<6_000 { cache.put("http a /\(page % 60)/\(page)") }
        var walk = PurgeWalk()
        var alone = PurgeWalk()
        alone.add(Self.below("http b /"), as: 1, in: cache.store)
        let oneWalk = Self.run(&alone, cache).steps
        for number in 0..<58 { walk.add(Self.below("http a /\(number)/"), as: number, in: cache.store) }
        walk.add(Self.below("http a /", "http a /1", "http a /1/"), as: 58, in: cache.store)
        walk.add(.everything, as: 59, in: cache.store)
        let (dropped, steps) = Self.run(&walk, cache)
        #expect(steps == oneWalk)
        #expect((0..<58).allSatisfy { dropped[$0] == 100 })
        #expect(dropped[58] == 6_000, "once for each response, although two of its prefixes match some")
        #expect(dropped[59] == 6_000)
        #expect(cache.store.numbers.responses == 0 && cache.budget.used == 0)
    }

    @Test func `a purge that begins during a walk takes part from the next shard on, for one round`() {
        let cache = Cache(memory: 64 << 20, shards: 8)
        for page in 0..<8_000 { cache.put("http a /\(page % 2)/\(page)") }
        var walk = PurgeWalk()
        walk.add(Self.below("http a /0/"), as: 1, in: cache.store)
        var steps = 0
        // In the third of eight shards, each of which takes several steps.
        while cache.store.numbers.responses > 8_000 - 1_200 {
            _ = walk.step(through: cache.store, purge: { key, _ in cache.store.remove(key) })
            steps += 1
        }
        walk.add(Self.below("http a /1/"), as: 2, in: cache.store)
        let firstRun = Self.run(&walk, cache) { _ in cache.store.numbers.responses == 0 }
        let (dropped, rest) = Self.run(&walk, cache)
        let all = firstRun.dropped.merging(dropped) { one, _ in one }
        #expect(all == [1: 4_000, 2: 4_000])
        let total = steps + firstRun.steps + rest
        var alone = PurgeWalk()
        alone.add(Self.below("http b /"), as: 1, in: cache.store)
        let oneWalk = Self.run(&alone, cache).steps
        #expect(total < oneWalk * 3 / 2, "\(total) of \(oneWalk)")
    }

    @Test func `a purge that is removed counts nothing more, and ends no other`() {
        let cache = Cache(memory: 64 << 20, shards: 2)
        for page in 0..<3_000 { cache.put("http a /\(page % 2)/\(page)") }
        var walk = PurgeWalk()
        walk.add(Self.below("http a /0/"), as: 1, in: cache.store)
        walk.add(Self.below("http a /1/"), as: 2, in: cache.store)
        _ = walk.step(through: cache.store, purge: { key, _ in cache.store.remove(key) })
        walk.remove(1)
        walk.add(Self.below("http a /0/"), as: 3, in: cache.store)
        walk.remove(3)
        #expect(Self.run(&walk, cache).dropped == [2: 1_500])
        let left = cache.store.numbers.responses
        #expect(left > 1_000 && left < 1_500, "some were purged before")
        #expect(walk.isEmpty)
    }

    /// Purges begin at any step, while keys come and go.
    @Test(arguments: Rounds.seeds(20)) func `no response that was stored before a purge is left after it`(seed: UInt64)
    {
        var random = SeededGenerator(seed: seed)
        let cache = Cache(memory: 64 << 20, shards: [1, 2, 8][Int(seed % 3)])
        var walk = PurgeWalk()
        /// For each purge in progress: its folder, the keys that were stored in it when the purge began, and how many
        /// responses in it were dropped since.
        var purges: [Int: (folder: Int, before: Set<String>, dropped: Int)] = [:]
        var (begun, ended) = (0, 0)
        func keys(in folder: Int) -> Set<String> {
            Set((0..<400).map { "http a /\(folder)/\($0)" }.filter { cache.resource($0) != nil })
        }
        while ended < 40 {
            let folder = Int.random(in: 0..<4, using: &random)
            for _ in 0..<Int.random(in: 0...200, using: &random) {
                cache.put("http a /\(folder)/\(Int.random(in: 0..<400, using: &random))")
            }
            if Int.random(in: 0..<3, using: &random) == 0 {
                begun += 1
                walk.add(Self.below("http a /\(folder)/"), as: begun, in: cache.store)
                purges[begun] = (folder, keys(in: folder), 0)
            }
            let over = walk.step(through: cache.store) { key, _ in
                let bytes = key.bytes
                let name = String(bytes.span)
                for (number, purge) in purges where name.hasPrefix("http a /\(purge.folder)/") {
                    purges[number]?.before.remove(name)
                    purges[number]?.dropped += 1
                }
                return cache.store.remove(key)
            }
            for purge in over {
                guard let model = purges.removeValue(forKey: purge.number) else {
                    Issue.record("an unknown purge ended")
                    continue
                }
                #expect(model.before.isEmpty)
                // It may have begun to count later.
                #expect(purge.purged <= model.dropped)
                ended += 1
            }
        }
    }
}
