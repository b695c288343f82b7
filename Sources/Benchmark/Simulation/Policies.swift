import Storage

/// A cache of `capacity` bytes: is told each request, and says whether it was a hit.
protocol Policy {
    mutating func request(_ object: Int, size: Int, waiters: Int, at number: Int) -> Bool
}

/// The eviction code of the product.
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

/// FIFO, and LRU, which moves what is used to the end. The queue is a list in time; dead entries are skipped.
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

/// Knows the future (Belady 1966): gives up what is needed last, and does not take what is needed later than all it
/// has. With objects of different sizes this is near the best, not the best, which is not feasible to compute; `bySize`
/// weighs distance by size, which serves requests better, and without it bytes.
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
    /// The next use of what is held.
    private var held: [Int: (next: Int, size: Int)] = [:]
    /// Candidates, the least worth keeping first; a held object's entries with another `next` are dead.
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
        // Distances shrink alike for all, so without sizes the order of entry stays right; with them it is an
        // approximation.
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

/// A binary heap, the least first.
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
