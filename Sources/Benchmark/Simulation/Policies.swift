import Storage

/// A cache of limited size. It is told of each request, and returns whether the request was a hit.
protocol Policy {
    mutating func request(_ object: Int, size: Int, waiters: Int, at number: Int) -> Bool
}

/// The eviction code of coalesced itself.
struct RealS3FIFO: Policy {
    private final class Page: EvictionCandidate {
        let object: Int
        var frequency: UInt8
        var isInUse: Bool { false }
        init(_ object: Int, waiters: Int) { (self.object, frequency) = (object, UInt8(min(3, waiters))) }
        func setFrequency(_ frequency: UInt8) { self.frequency = frequency }
        func noteUse() { if frequency < 3 { frequency += 1 } }
    }

    private var queues: S3FIFO<Page>
    private var pages: [Int: Page] = [:]
    private let capacity: Int
    private let countsWaiters: Bool

    init(capacity: Int, smallPercent: Int, countsWaiters: Bool = true) {
        queues = S3FIFO(smallPercent: smallPercent)
        self.capacity = capacity
        self.countsWaiters = countsWaiters
    }

    mutating func request(_ object: Int, size: Int, waiters: Int, at number: Int) -> Bool {
        if let page = pages[object] { page.noteUse(); return true }
        guard size <= capacity else { return false }
        while queues.bytes + size > capacity, let eviction = queues.evict() { pages[eviction.candidate.object] = nil }
        let page = Page(object, waiters: countsWaiters ? waiters : 0)
        pages[object] = page
        _ = queues.insert(page, hash: UInt64(truncatingIfNeeded: object) &* 0x9e37_79b9_7f4a_7c15, size: size)
        return false
    }
}

/// FIFO, or LRU, which moves a used object to the end. The queue is ordered by time; entries that are out of date are
/// skipped.
struct Recency: Policy {
    private var last: [Int: (stamp: Int, size: Int)] = [:]
    private var queue: [(object: Int, stamp: Int)] = []
    private var head = 0
    private var bytes = 0
    private let capacity: Int
    private let movesOnUse: Bool

    init(capacity: Int, movesOnUse: Bool) { (self.capacity, self.movesOnUse) = (capacity, movesOnUse) }

    mutating func request(_ object: Int, size: Int, waiters: Int, at number: Int) -> Bool {
        if last[object] != nil {
            if movesOnUse {
                last[object] = (number, size)
                queue.append((object, number))
            }
            return true
        }
        guard size <= capacity else { return false }
        while bytes + size > capacity, head < queue.count {
            let (oldest, stamp) = queue[head]
            head += 1
            if let entry = last[oldest], entry.stamp == stamp {
                bytes -= entry.size
                last[oldest] = nil
            }
        }
        last[object] = (number, size)
        queue.append((object, number))
        bytes += size
        return false
    }
}

/// Knows the future (Belady 1966): evicts the object whose next request is last, and does not store an object whose
/// next request is later than the next requests of all stored ones. With objects of different sizes the result is close
/// to the best one, which is not feasible to compute. `bySize` weighs the distance by the size, which gives more hits
/// by requests; without `bySize` there are more hits by bytes.
struct Offline: Policy {
    private struct Entry: Comparable {
        let worth: Double
        let object: Int
        let next: Int
        static func < (left: Entry, right: Entry) -> Bool { left.worth < right.worth }
    }

    private let next: [Int]
    private let bySize: Bool
    private let capacity: Int
    private var bytes = 0
    /// The next request, and the size, of each stored object.
    private var held: [Int: (next: Int, size: Int)] = [:]
    /// Candidates for eviction, the least worth keeping first. An entry whose `next` differs from the stored object's
    /// is out of date.
    private var heap = Heap<Entry>()

    init(capacity: Int, trace: [Int], bySize: Bool) {
        (self.capacity, self.bySize) = (capacity, bySize)
        var seen: [Int: Int] = [:]
        var next = [Int](repeating: Int.max, count: trace.count)
        for number in trace.indices.reversed() {
            next[number] = seen[trace[number]] ?? Int.max
            seen[trace[number]] = number
        }
        self.next = next
    }

    mutating func request(_ object: Int, size: Int, waiters: Int, at number: Int) -> Bool {
        let wasHeld = held[object] != nil
        let following = next[number]
        if following == Int.max {
            if let entry = held.removeValue(forKey: object) { bytes -= entry.size }
            return wasHeld
        }
        guard size <= capacity else { return false }
        if !wasHeld { bytes += size }
        held[object] = (following, size)
        // All distances shrink by the same amount, so without sizes the order of insertion stays right. With sizes it
        // is an approximation.
        let worth = bySize ? -Double(following - number) * Double(size) - Double(number) : -Double(following)
        heap.insert(Entry(worth: worth, object: object, next: following))
        while bytes > capacity, let least = heap.popMin() {
            guard let entry = held[least.object], entry.next == least.next else { continue }
            held[least.object] = nil
            bytes -= entry.size
        }
        return wasHeld
    }
}

/// A binary heap, the least element first.
struct Heap<Element: Comparable> {
    private var elements: [Element] = []

    mutating func insert(_ element: Element) {
        elements.append(element)
        var index = elements.count - 1
        while index > 0, elements[index] < elements[(index - 1) / 2] {
            elements.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    mutating func popMin() -> Element? {
        guard let least = elements.first, let last = elements.popLast() else { return nil }
        guard !elements.isEmpty else { return least }
        elements[0] = last
        var index = 0
        while true {
            var smallest = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < elements.count && elements[child] < elements[smallest] {
                smallest = child
            }
            if smallest == index { return least }
            elements.swapAt(index, smallest)
            index = smallest
        }
    }
}
