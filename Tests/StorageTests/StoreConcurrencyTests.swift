import Bytes
import Dispatch
import HTTPSemantics
import Repeatable
import Storage
import Synchronization
import Testing

/// Run it with the thread sanitizer too: see `GrowingBodyConcurrencyTests`.
@Suite(.serialized) struct StoreConcurrencyTests {
    private static func key(_ number: Int) -> String { "http://origin/\(number)" }

    @Test func `threads that look up, store and purge never get another key's response`() {
        let cache = Cache(memory: 300_000, shards: 4)
        let store = cache.store
        let mistakes = Guarded<[String]>([])
        DispatchQueue.concurrentPerform(iterations: 6) { thread in
            var random = SeededGenerator(ofTest: UInt64(thread))
            for _ in 0..<1500 * Rounds.count {
                let number = Int.random(in: 0..<64, using: &random)
                let key = cache.key(Self.key(number))
                switch Int.random(in: 0..<20, using: &random) {
                case 0...3:
                    guard
                        let response = cache.response(
                            Int.random(in: 1...8000, using: &random), of: UInt8(number), vary: "Accept",
                            request: [("Accept", "\(Int.random(in: 0..<4, using: &random))")], tag: "\(number)"
                        )
                    else { continue }
                    _ = store.store(response, under: key, requestTime: Sample.never, unless: { false })
                case 4: store.mark(key, .prohibited(.status), until: 1, at: Moment(monotonic: 0, wall: 0))
                case 5, 6: store.remove(key, keepsNotes: Bool.random(using: &random))
                case 7: if number == 0 { store.removeAll() }
                case 8: _ = store.makeRoom(bytes: Int.random(in: 0...50_000, using: &random))
                default:
                    guard let resource = store.resource(key) else { continue }
                    for response in resource.responses {
                        response.noteUse()
                        let isRight = response.tag == "\(number)" && firstByte(response.bodyToFollow()) == UInt8(number)
                        if !isRight { mistakes.withLock { $0.append("\(number) got \(response.tag)") } }
                    }
                }
                if cache.budget.used > cache.budget.limit { mistakes.withLock { $0.append("over the ceiling") } }
            }
        }
        #expect(mistakes.withLock { $0 } == [])
        #expect(store.numbers.bytes == cache.budget.used)
        store.removeAll()
        #expect(cache.budget.used == 0)
    }

    @Test func `a response fetched before an invalidation is not found afterwards`() {
        let cache = Cache(memory: 4 << 20, shards: 2)
        let store = cache.store
        // The origin's state: a fetch sees the version of the moment it begins at or a later one.
        let version = Atomic<Int>(0)
        let invalidated = Atomic<Int>(0)
        let stale = Atomic<Int>(0)
        let key = cache.key(Self.key(1))
        // The fetch of each thread that stores.
        let marks = FixedArray(count: 3) { _ in Atomic(false) }
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for _ in 0..<2000 * Rounds.count {
                switch thread {
                case 0:
                    let new = version.add(1, ordering: .sequentiallyConsistent).newValue
                    for thread in 1...2 { marks[thread].store(true, ordering: .relaxed) }
                    if new % 3 == 0 { store.removeAll() } else { store.remove(key, keepsNotes: true) }
                    invalidated.store(new, ordering: .sequentiallyConsistent)
                case 1, 2:
                    marks[thread].store(false, ordering: .sequentiallyConsistent)
                    let seen = version.load(ordering: .sequentiallyConsistent)
                    guard let response = cache.response(10, date: Int64(seen)) else { continue }
                    _ = store.store(response, under: key, requestTime: Sample.never) {
                        marks[thread].load(ordering: .relaxed)
                    }
                default:
                    let least = invalidated.load(ordering: .sequentiallyConsistent)
                    guard let resource = store.resource(key) else { continue }
                    for response in resource.responses where response.facts.date < least {
                        stale.add(1, ordering: .sequentiallyConsistent)
                    }
                }
            }
        }
        #expect(stale.load(ordering: .sequentiallyConsistent) == 0)
    }
}

private func firstByte(_ body: GrowingBody) -> UInt8? {
    guard let piece = body.completePieces?.first else { return nil }
    let bytes = piece.span
    return bytes[0]
}
