import Repeatable
import Testing

@testable import Storage

private final class Page: EvictionCandidate {
    let name: Int
    var frequency: UInt8 = 0
    var isHeld = false
    /// How often it was asked whether it is in use.
    private(set) var asked = 0
    init(_ name: Int) { self.name = name }
    var isInUse: Bool { asked += 1; return isHeld }
    func setFrequency(_ frequency: UInt8) { self.frequency = frequency }
    func hit() { frequency = min(3, frequency + 1) }
}

private typealias Queues = S3FIFO<Page>

/// A cache of `capacity` bytes around the queues, as a trace simulator would drive it.
private struct Simulator {
    var queues = Queues(smallPercent: 10)
    var pages: [Int: (page: Page, slot: Queues.Slot)] = [:]
    var evicted: [Int] = []
    let capacity: Int

    /// Whether it was a hit.
    @discardableResult
    mutating func request(_ name: Int, size: Int = 1) -> Bool {
        if let (page, _) = pages[name] { page.hit(); return true }
        while queues.bytes + size > capacity, let eviction = queues.evict() {
            pages[eviction.candidate.name] = nil
            evicted.append(eviction.candidate.name)
        }
        let page = Page(name)
        pages[name] = (page, queues.insert(page, hash: UInt64(name) &* 0x9e37_79b9_7f4a_7c15, size: size))
        return false
    }

    /// Evicts everything.
    /// - Returns: the queue that each page was evicted from. One that was not used since its last move stands there.
    mutating func drain() -> [Int: EvictionQueue] {
        var left: [Int: EvictionQueue] = [:]
        while let eviction = queues.evict() { left[eviction.candidate.name] = eviction.queue }
        pages = [:]
        return left
    }
}

@Suite struct S3FIFOTests {
    @Test func `entries that are used once are evicted in the order of arrival`() {
        var cache = Simulator(capacity: 10)
        for name in 0..<15 { cache.request(name) }
        #expect(cache.evicted == [0, 1, 2, 3, 4])
    }

    @Test func `a scan does not evict used entries`() {
        var cache = Simulator(capacity: 100)
        for _ in 0..<3 { for name in 0..<50 { cache.request(name) } }
        for name in 1000..<10_000 { cache.request(name) }
        let hits = (0..<50).filter { cache.request($0) }
        #expect(hits.count == 50)
    }

    @Test func `two uses in probation earn a place in the main queue, one does not`() {
        var cache = Simulator(capacity: 10)
        for name in 0..<10 { cache.request(name) }
        cache.request(0); cache.request(0)
        cache.request(1)
        cache.request(10)
        #expect(cache.evicted == [1])
        #expect(cache.pages[0]?.page.frequency == 0)
        let queues = cache.drain()
        #expect(queues[0] == .main)
    }

    @Test func `an entry that returns soon after probation goes into the main queue`() {
        var cache = Simulator(capacity: 10)
        for name in 0..<11 { cache.request(name) }
        #expect(cache.evicted == [0])
        cache.request(0)
        let queues = cache.drain()
        #expect(queues[0] == .main)
        #expect(queues[5] == .small)
    }

    @Test func `an entry makes one more lap in the main queue for each use`() {
        var queues = Queues(smallPercent: 10)
        let pages = (0..<4).map { Page($0) }
        for page in pages {
            page.setFrequency(2)
            _ = queues.insert(page, hash: UInt64(page.name), size: 10)
        }
        // All are promoted; then the oldest unused one goes.
        var next = queues.evict()?.candidate.name
        #expect(next == 0)
        pages[1].hit()
        pages[3].hit(); pages[3].hit()
        next = queues.evict()?.candidate.name
        #expect(next == 2)
        next = queues.evict()?.candidate.name
        #expect(next == 1)
        next = queues.evict()?.candidate.name
        #expect(next == 3)
        next = queues.evict()?.candidate.name
        #expect(next == nil)
    }

    @Test(arguments: [(99, EvictionQueue.main), (100, .small)])
    func `probation is ten percent of the bytes, not of the entries`(_ newcomer: Int, _ expected: EvictionQueue) {
        var queues = Queues(smallPercent: 10)
        for name in 0..<91 {
            let page = Page(name)
            page.setFrequency(2)
            _ = queues.insert(page, hash: UInt64(name), size: 10)
        }
        // All 91 are promoted, and one of them goes: the main queue holds 900 bytes.
        _ = queues.evict()
        #expect(queues.bytes == 900)
        _ = queues.insert(Page(100), hash: 100, size: newcomer)
        let queue = queues.evict()?.queue
        #expect(queue == expected)
    }

    @Test(arguments: [UInt8(0), 2])
    func `a pinned entry is passed over, and is evicted once it is no longer pinned`(_ frequency: UInt8) {
        var queues = Queues(smallPercent: 10)
        let pages = (0..<4).map { Page($0) }
        for page in pages {
            page.setFrequency(frequency)
            page.isHeld = page.name < 3
            _ = queues.insert(page, hash: UInt64(page.name), size: 10)
        }
        var next = queues.evict()?.candidate.name
        #expect(next == 3)
        next = queues.evict()?.candidate.name
        #expect(next == nil && queues.count == 3 && queues.bytes == 30)
        pages[1].isHeld = false
        next = queues.evict()?.candidate.name
        #expect(next == 1)
    }

    /// The caller holds a lock; what one eviction did not reach, one of the next does.
    @Test(arguments: [UInt8(0), 2])
    func `an eviction looks at few pinned entries, and the next evictions go on behind them`(_ frequency: UInt8) {
        var queues = Queues(smallPercent: 10)
        let held = (0..<10_000).map { Page($0) }
        for page in held {
            page.isHeld = true
            page.setFrequency(frequency)
            _ = queues.insert(page, hash: UInt64(page.name), size: 10)
        }
        _ = queues.insert(Page(-1), hash: 77, size: 10)
        // Into the main queue, if they are to be there.
        var found = queues.evict()?.candidate.name
        var tries = 1
        while found == nil, tries < 100 {
            let before = held.reduce(0) { $0 + $1.asked }
            found = queues.evict()?.candidate.name
            #expect(held.reduce(0) { $0 + $1.asked } - before <= Queues.mostLaps + 2)
            tries += 1
        }
        #expect(found == -1 && queues.count == 10_000)
        #expect(tries <= 10_000 / Queues.mostLaps + 2)
    }

    @Test func `an update keeps an entry's place, and its bytes are counted again`() {
        var queues = Queues(smallPercent: 10)
        let slot = queues.insert(Page(1), hash: 1, size: 10)
        _ = queues.insert(Page(2), hash: 2, size: 10)
        queues.replace(slot, with: Page(3), size: 25)
        #expect(queues.bytes == 35 && queues.count == 2)
        let next = queues.evict()?.candidate.name
        #expect(next == 3)
        #expect(queues.bytes == 10)
    }

    @Test func `many uses cannot delay an eviction`() {
        var queues = Queues(smallPercent: 0)
        for name in 0..<10_000 {
            let page = Page(name)
            page.setFrequency(3)
            _ = queues.insert(page, hash: UInt64(name), size: 1)
        }
        for _ in 0..<10_000 { _ = queues.evict() }
        #expect(queues.count == 0 && queues.bytes == 0)
    }

    @Test(arguments: Rounds.seeds(20))
    func `the queues hold the same entries as a list`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var queues = Queues(smallPercent: 10)
        var model: [Int: (page: Page, slot: Queues.Slot, size: Int)] = [:]
        for step in 0..<3000 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1:
                let page = Page(step)
                let size = Int.random(in: 0...100, using: &random)
                let slot = queues.insert(page, hash: UInt64.random(in: 0..<500, using: &random), size: size)
                model[step] = (page, slot, size)
            case 2: model.randomElement(using: &random)?.value.page.hit()
            case 3:
                guard let (name, entry) = model.randomElement(using: &random) else { continue }
                queues.remove(entry.slot)
                model[name] = nil
            case 4:
                guard let (name, entry) = model.randomElement(using: &random) else { continue }
                queues.replace(entry.slot, with: entry.page, size: entry.size + 1)
                model[name]?.size += 1
            default:
                let eviction = queues.evict()
                #expect((eviction == nil) == model.isEmpty)
                if let eviction {
                    let gone = model.removeValue(forKey: eviction.candidate.name)
                    #expect(gone?.page === eviction.candidate && gone?.slot == eviction.slot)
                }
            }
            #expect(queues.count == model.count)
            #expect(queues.bytes == model.values.reduce(0) { $0 + $1.size })
        }
    }
}
