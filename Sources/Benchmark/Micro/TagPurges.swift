import Bytes
import Foundation
import HTTPSemantics
import Storage
import Synchronization

/// A purge of a tag in a large store, in which each response has three tags, and the look-ups of another thread meanwhile.
enum TagPurges {
    private static let now = Moment(monotonic: 5_000_000_000, wall: 1_000_005)
    private static let hasher = KeyedHash(k0: 1, k1: 2)
    /// Each tenth response has the tag that is purged; each tag of the second kind has a hundred, and each of the third
    /// a thousand.
    static func tags(_ number: Int) -> String {
        "ten-\(number % 10) page-\(number / 100) part-\(number / 1000)"
    }

    /// - Parameter entries: how many responses are stored.
    static func table(entries: Int) -> String {
        // Both stay, so that neither takes memory that the other has freed.
        let (plain, other) = filled(entries, hasTags: false)
        let (tagged, store) = filled(entries, hasTags: true)
        defer { withExtendedLifetime(other) {} }
        let distinct = 10 + entries / 100 + entries / 1000
        let each = (Double(tagged - plain) - 288 * Double(distinct)) / Double(3 * entries)
        var lines = """
            \(entries) responses stored, each with 3 of \(distinct) tags: \(plain >> 20) MiB without the tags, \(tagged >> 20) \
            MiB with them; without 288 bytes for each tag, \(String(format: "%.1f", each)) bytes a tag a response

            | | |
            | --- | ---: |

            """
        let reader = Reader(of: store, entries)
        System.nap(milliseconds: 500)
        let before = reader.turn()
        let start = System.now
        let purged = store.tags.purge([ByteSlice("ten-3")])
        let took = System.now - start
        reader.isPurged.store(true, ordering: .sequentiallyConsistent)
        var (walk, longest) = (PurgeWalk(), Int64(0))
        walk.sweep()
        var (begun, worked, steps) = (System.now, Int64(0), 0)
        while !walk.isEmpty {
            let start = System.now
            _ = walk.step(through: store) { _, _ in 0 }
            longest = max(longest, System.now - start)
            worked += System.now - start
            steps += 1
            System.nap(milliseconds: 2)
        }
        begun = System.now - begun
        let sweeping = reader.stop()
        lines += "| the purge, µs | \(took / 1000) |\n| responses purged | \(purged) |\n"
        lines +=
            "| the sweep, ms, of which work, longest step µs | \(begun / 1_000_000), \(worked / 1_000_000), \(longest / 1000) |\n"
        lines += "| look-ups before: p50, p99.9, longest, ns | \(quantiles(before)) |\n"
        lines += "| look-ups from the purge to the end of the sweep | \(quantiles(sweeping.times)) |\n"
        lines += "| purged responses found after the purge | \(sweeping.wrong) |\n"
        lines += "| responses stored after the sweep | \(store.numbers.responses) |\n"
        return lines
    }

    private static func quantiles(_ times: [Int64]) -> String {
        let sorted = times.sorted()
        guard let longest = sorted.last else { return "none" }
        return "\(sorted[sorted.count / 2]), \(sorted[sorted.count * 999 / 1000]), \(longest)"
    }

    /// A thread that looks up random keys until it is told to stop.
    private final class Reader: Sendable {
        let isPurged = Atomic(false)
        private let isOver = Atomic(false)
        private let state = Mutex<(times: [Int64], wrong: Int)>(([], 0))
        private let done = DispatchSemaphore(value: 0)

        init(of store: ResponseStore, _ entries: Int) {
            Thread.detachNewThread { [self] in
                var random = SystemRandomNumberGenerator()
                let fields = HeadBlock(lines: ByteSlice("Host: a.example\r\n"))
                while !isOver.load(ordering: .relaxed) {
                    let number = Int.random(in: 0..<entries, using: &random)
                    let key = TagPurges.key(number)
                    let bytes = key.bytes
                    let isPurged = isPurged.load(ordering: .sequentiallyConsistent)
                    let start = System.now
                    let found = store.response(hash: key.hash, key: bytes.span, matching: fields.view)
                    let took = System.now - start
                    let isWrong = isPurged && (found != nil) == (number % 10 == 3)
                    state.withLock { state in
                        state.times.append(took)
                        if isWrong { state.wrong += 1 }
                    }
                }
                done.signal()
            }
        }

        /// - Returns: nanoseconds of each look-up so far, which begins anew.
        func turn() -> [Int64] {
            state.withLock { state in
                let times = state.times
                state.times = []
                return times
            }
        }

        func stop() -> (times: [Int64], wrong: Int) {
            isOver.store(true, ordering: .relaxed)
            done.wait()
            return state.withLock { $0 }
        }
    }

    private static func key(_ number: Int) -> CacheKey {
        let bytes = ByteSlice("http a.example /articles/\(number)")
        return CacheKey(hash: hasher.hash(bytes.span), bytes: bytes)
    }

    /// - Returns: by how many bytes the program has grown, and the store.
    private static func filled(_ entries: Int, hasTags: Bool) -> (bytes: Int, ResponseStore) {
        let before = residentBytes
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
            let names = HeadBlock(lines: ByteSlice(hasTags ? "xkey: \(tags(number))\r\n" : "A: b\r\n"))
            let response = StoredResponse(
                packing: lines.span, body: body.span, under: bytes.span, facts: facts,
                tags: store.tags.tags(in: names.view, by: .usual, at: "a.example", requested: store.tags.generation))
            let outcome = store.store(response, under: key, requestTime: now, unless: { false })
            precondition(outcome == .stored)
        }
        return (residentBytes - before, store)
    }

    /// From `/proc/self/statm`.
    private static var residentBytes: Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4096
    }
}
