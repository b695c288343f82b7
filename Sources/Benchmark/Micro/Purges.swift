import Bytes
import Foundation
import HTTPSemantics
import Storage
import Synchronization

/// Purges of prefixes in a large store, and the look-ups of another thread meanwhile: times, so they differ from machine
/// to machine and from run to run.
enum Purges {
    private static let purges = 60
    private static let now = Moment(monotonic: 5_000_000_000, wall: 1_000_005)
    private static let hasher = KeyedHash(k0: 1, k1: 2)

    private struct Result {
        let name: String
        var dropped = 0
        var steps = 0
        var walked: Int64 = 0
        var longestStep: Int64 = 0
        /// Nanoseconds of each look-up meanwhile.
        var lookUps: [Int64] = []
    }

    /// - Parameter entries: how many responses are stored.
    static func table(entries: Int) -> String {
        let store = filled(entries)
        let results = [
            measure("no purge, for a second", in: store, entries) { _ in System.nap(milliseconds: 1000) },
            measure("1 purge, of nothing that is stored", in: store, entries) { result in
                walk([below("http b.example /0/")], in: store, &result)
            },
            measure("\(purges) purges one after another, the same", in: store, entries) { result in
                for number in 0..<purges { walk([below("http b.example /\(number)/")], in: store, &result) }
            },
            measure("\(purges) purges at once, the same", in: store, entries) { result in
                walk((0..<purges).map { below("http b.example /\($0)/") }, in: store, &result)
            },
            measure("\(purges) purges at once, of a tenth of the store", in: store, entries) { result in
                walk((0..<purges).map { below("http a.example /\($0)/") }, in: store, &result)
            },
            measure("a purge of everything", in: store, entries) { result in walk([.everything], in: store, &result) },
        ]
        return results.reduce(
            "\(entries) responses stored\n\n| | ms | steps | longest step, µs | dropped | look-ups: p50, p99, p99.9, ns |\n| --- | ---: | ---: | ---: | ---: | ---: |\n"
        ) { table, result in
            let sorted = result.lookUps.sorted()
            func quantile(_ share: Double) -> Int64 {
                sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
            }
            return table
                + "| \(result.name) | \(result.walked / 1_000_000) | \(result.steps) | \(result.longestStep / 1000) | \(result.dropped) | \(quantile(0.5)), \(quantile(0.99)), \(quantile(0.999)) |\n"
        }
    }

    private static func below(_ prefix: String) -> PurgedURLs {
        PurgedURLs(below: [ByteSlice(prefix), ByteSlice("https" + prefix.dropFirst(4))])
    }

    private static func walk(_ purges: [PurgedURLs], in store: ResponseStore, _ result: inout Result) {
        var walk = PurgeWalk()
        for (number, purge) in purges.enumerated() { walk.add(purge, as: number, in: store) }
        let begun = System.now
        while !walk.isEmpty {
            let start = System.now
            let ended = walk.step(through: store) { key, _ in store.remove(key) }
            result.longestStep = max(result.longestStep, System.now - start)
            result.steps += 1
            result.dropped += ended.reduce(0) { $0 + $1.purged }
        }
        result.walked += System.now - begun
    }

    /// A thread that looks up random keys until it is told to stop.
    private final class Reader: Sendable {
        private let isOver = Atomic(false)
        private let times = Mutex<[Int64]>([])
        private let done = DispatchSemaphore(value: 0)

        init(of store: ResponseStore, _ entries: Int) {
            Thread.detachNewThread { [self] in
                var random = SystemRandomNumberGenerator()
                var own: [Int64] = []
                own.reserveCapacity(4_000_000)
                let fields = HeadBlock(lines: ByteSlice("Host: a.example\r\n"))
                while !isOver.load(ordering: .relaxed), own.count < 4_000_000 {
                    let key = Purges.key(Int.random(in: 0..<entries, using: &random))
                    let bytes = key.bytes
                    let start = System.now
                    _ = store.response(hash: key.hash, key: bytes.span, matching: fields.view)
                    own.append(System.now - start)
                }
                times.withLock { $0 = own }
                done.signal()
            }
        }

        /// - Returns: nanoseconds of each look-up.
        func stop() -> [Int64] {
            isOver.store(true, ordering: .relaxed)
            done.wait()
            return times.withLock { $0 }
        }
    }

    private static func measure(
        _ name: String, in store: ResponseStore, _ entries: Int, _ body: (inout Result) -> Void
    ) -> Result {
        var result = Result(name: name)
        let reader = Reader(of: store, entries)
        body(&result)
        result.lookUps = reader.stop()
        return result
    }

    private static func key(_ number: Int) -> CacheKey {
        let bytes = ByteSlice("http a.example /\(number % (10 * purges))/articles/\(number)")
        return CacheKey(hash: hasher.hash(bytes.span), bytes: bytes)
    }

    private static func filled(_ entries: Int) -> ResponseStore {
        var settings = StorageSettings()
        settings.memory = max(64 << 20, entries * 2048)
        let store = ResponseStore(settings: settings, budget: MemoryBudget(limit: settings.memory))
        let head = HeadBlock(lines: ByteSlice("Content-Type: text/plain\r\nCache-Control: max-age=3600\r\n"))
        let facts = ResponseFacts(
            status: .ok, fields: head.view, requestTime: now, responseTime: now, policy: CachingPolicy())
        let body = ByteSlice(String(repeating: "x", count: 100))
        for number in 0..<entries {
            let key = key(number)
            let (lines, bytes) = (head.bytes, key.bytes)
            let response = StoredResponse(packing: lines.span, body: body.span, under: bytes.span, facts: facts)
            let outcome = store.store(response, under: key, requestTime: now, unless: { false })
            precondition(outcome == .stored)
        }
        return store
    }
}
