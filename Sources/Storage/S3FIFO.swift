/// An entry that `S3FIFO` can hold: it counts how often it is used.
///
/// The counter belongs to the candidate, so that a hit increments it without the queues' lock.
public protocol EvictionCandidate {
    /// The counter, 0 to 3. More than one use in probation earns a place in the main queue.
    var frequency: UInt8 { get }
    func setFrequency(_ frequency: UInt8)
    /// Distinguishes, in the ghost queue, candidates with the same hash: variants of one URL.
    var distinction: UInt32 { get }
    /// Whether evicting the candidate now would free no bytes. Evictions pass over such a candidate.
    var isInUse: Bool { get }
}

extension EvictionCandidate {
    /// 0: the hash alone identifies the candidate.
    public var distinction: UInt32 { 0 }
}

/// The queue a candidate stands in. The raw values are the names in metrics.
public enum EvictionQueue: String, Sendable, CaseIterable {
    case small, main
}

/// S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023), sized in bytes.
///
/// ```
///           ┌─ small: probation ─used twice→ main ⟲ used since: another lap
/// insert ───┤         └─evicted, remembered in ghost   └─evicted
///           └─ main, when ghost remembers it
/// ```
///
/// A candidate that is in use makes another lap in its queue. That lap neither promotes it nor lowers its counter.
///
/// This type decides only the order and the choice: it has no clock, no lock, no budget. The caller evicts until enough
/// bytes are free. The queues are doubly linked through one array, so that `remove` leaves no dead entry: a resource
/// that is stored over and over without any eviction would otherwise pile up dead entries.
public struct S3FIFO<Candidate: EvictionCandidate> {
    /// The place of a candidate, until the candidate is evicted or removed.
    public struct Slot: Sendable, Equatable {
        let index: UInt32
    }

    /// An evicted candidate.
    public struct Eviction {
        /// The candidate; `hash` is the hash with which it was inserted.
        public let candidate: Candidate
        public let hash: UInt64
        /// The candidate's former place, free for the next `insert`.
        public let slot: Slot
        public let queue: EvictionQueue
    }

    private struct Node {
        var candidate: Candidate?
        var hash: UInt64
        /// The size, and the queue in the lowest bit. This keeps a node at 32 bytes; there is one node for each
        /// response.
        private var sizeAndQueue: Int
        /// Towards the newer and the older neighbour; `newer` also links the free nodes.
        var newer: UInt32
        var older: UInt32

        init(candidate: Candidate, hash: UInt64, size: Int, queue: EvictionQueue) {
            self.candidate = candidate
            self.hash = hash
            sizeAndQueue = size << 1 | (queue == .main ? 1 : 0)
            newer = S3FIFO.none
            older = S3FIFO.none
        }

        var size: Int {
            get { sizeAndQueue >> 1 }
            set { sizeAndQueue = newValue << 1 | sizeAndQueue & 1 }
        }

        var queue: EvictionQueue {
            get { sizeAndQueue & 1 == 0 ? .small : .main }
            set { sizeAndQueue = sizeAndQueue & ~1 | (newValue == .main ? 1 : 0) }
        }
    }

    private struct Queue {
        var newest = S3FIFO.none
        var oldest = S3FIFO.none
        var bytes = 0
        var count = 0
    }

    private static var none: UInt32 { .max }
    /// Uses in probation that earn a place in the main queue. Promotion on the first use keeps more of a cyclic scan,
    /// but far less if resources are requested exactly twice (docs/benchmarks.md, Cache efficiency).
    private static var promotion: UInt8 { 2 }
    /// The most laps in one eviction, since the caller holds a lock. After that, the oldest candidate goes even if it
    /// was used; if it is in use, no candidate goes. The next eviction continues behind the candidates that made a lap.
    package static var mostLaps: Int { 256 }

    private let smallPercent: Int
    private var nodes: [Node] = []
    private var free = S3FIFO.none
    private var small = Queue()
    private var main = Queue()
    private var ghost = GhostQueue()

    /// - Parameter smallPercent: the share of all bytes above which probation is evicted from first.
    public init(smallPercent: Int) { self.smallPercent = smallPercent }

    /// The number of candidates in both queues.
    var count: Int { small.count + main.count }
    /// The sum of the candidates' sizes.
    public var bytes: Int { small.bytes + main.bytes }

    /// Inserts a new candidate: into probation, or directly into the main queue if it was lately evicted from
    /// probation.
    /// - Parameter hash: identifies the candidate in the ghost queue, together with its `distinction`.
    public mutating func insert(_ candidate: Candidate, hash: UInt64, size: Int) -> Slot {
        let queue: EvictionQueue = ghost.take(Self.fingerprint(of: candidate, hash)) ? .main : .small
        let node = Node(candidate: candidate, hash: hash, size: size, queue: queue)
        let index: UInt32
        if free != Self.none {
            index = free
            free = nodes[Int(index)].newer
            nodes[Int(index)] = node
        } else {
            index = UInt32(nodes.count)
            // The array grows by a quarter, not to its double: unused nodes are memory outside the budget.
            if nodes.count == nodes.capacity { nodes.reserveCapacity(nodes.count + max(16, nodes.count / 4)) }
            nodes.append(node)
        }
        link(index, to: queue)
        return Slot(index: index)
    }

    /// Puts another candidate in the same place: an update does not move in its queue.
    public mutating func replace(_ slot: Slot, with candidate: Candidate, size: Int) {
        let index = Int(slot.index)
        adjust(nodes[index].queue, bytes: size - nodes[index].size, count: 0)
        nodes[index].size = size
        nodes[index].candidate = candidate
    }

    /// Removes a candidate. Its slot may then be given to another.
    public mutating func remove(_ slot: Slot) {
        unlink(slot.index)
        release(slot.index)
    }

    /// The queue that the candidate at `slot` stands in.
    func queue(of slot: Slot) -> EvictionQueue { nodes[Int(slot.index)].queue }

    /// Removes a candidate as an eviction does: the ghost queue remembers it if it was in probation.
    mutating func giveUp(_ slot: Slot) {
        let node = nodes[Int(slot.index)]
        if node.queue == .small, let candidate = node.candidate {
            ghost.insert(Self.fingerprint(of: candidate, node.hash), capacity: count)
        }
        remove(slot)
    }

    private static func fingerprint(of candidate: Candidate, _ hash: UInt64) -> UInt64 {
        hash ^ UInt64(candidate.distinction)
    }

    /// Evicts the least valuable candidate. `nil` if there is no candidate, or if none was found before the laps were
    /// used up.
    public mutating func evict() -> Eviction? {
        var laps = Self.mostLaps
        if small.bytes * 100 >= bytes * smallPercent, let eviction = evictFromSmall(&laps) { return eviction }
        return evictFromMain(&laps) ?? evictFromSmall(&laps)
    }

    /// Forgets all candidates, and the ghost queue.
    public mutating func removeAll() {
        nodes = []
        free = Self.none
        small = Queue()
        main = Queue()
        ghost.removeAll()
    }

    private mutating func evictFromSmall(_ laps: inout Int) -> Eviction? {
        // Visits each candidate once at most.
        for _ in 0..<small.count {
            let index = small.oldest
            guard let candidate = nodes[Int(index)].candidate else { preconditionFailure("a free node in a queue") }
            let isPromoted = candidate.frequency >= Self.promotion
            if !isPromoted, candidate.isInUse {
                guard laps > 0 else { return nil }
                laps -= 1
                unlink(index)
                link(index, to: .small)
                continue
            }
            unlink(index)
            guard isPromoted else {
                let hash = nodes[Int(index)].hash
                ghost.insert(Self.fingerprint(of: candidate, hash), capacity: count)
                release(index)
                return Eviction(candidate: candidate, hash: hash, slot: Slot(index: index), queue: .small)
            }
            candidate.setFrequency(0)
            link(index, to: .main)
        }
        return nil
    }

    private mutating func evictFromMain(_ laps: inout Int) -> Eviction? {
        var inUseInARow = 0
        while main.oldest != Self.none {
            let index = main.oldest
            guard let candidate = nodes[Int(index)].candidate else { preconditionFailure("a free node in a queue") }
            if candidate.isInUse {
                guard laps > 0, inUseInARow < main.count else { return nil }
                inUseInARow += 1
                laps -= 1
                unlink(index)
                link(index, to: .main)
                continue
            }
            inUseInARow = 0
            unlink(index)
            let frequency = candidate.frequency
            guard frequency > 0, laps > 0 else {
                let hash = nodes[Int(index)].hash
                release(index)
                return Eviction(candidate: candidate, hash: hash, slot: Slot(index: index), queue: .main)
            }
            candidate.setFrequency(frequency - 1)
            link(index, to: .main)
            laps -= 1
        }
        return nil
    }

    // MARK: - Links

    private mutating func link(_ index: UInt32, to name: EvictionQueue) {
        let newest = name == .small ? small.newest : main.newest
        nodes[Int(index)].queue = name
        nodes[Int(index)].older = newest
        nodes[Int(index)].newer = Self.none
        if newest != Self.none { nodes[Int(newest)].newer = index }
        switch name {
        case .small:
            small.newest = index
            if small.oldest == Self.none { small.oldest = index }
        case .main:
            main.newest = index
            if main.oldest == Self.none { main.oldest = index }
        }
        adjust(name, bytes: nodes[Int(index)].size, count: 1)
    }

    private mutating func unlink(_ index: UInt32) {
        let (newer, older) = (nodes[Int(index)].newer, nodes[Int(index)].older)
        let name = nodes[Int(index)].queue
        if newer != Self.none { nodes[Int(newer)].older = older }
        if older != Self.none { nodes[Int(older)].newer = newer }
        switch name {
        case .small:
            if newer == Self.none { small.newest = older }
            if older == Self.none { small.oldest = newer }
        case .main:
            if newer == Self.none { main.newest = older }
            if older == Self.none { main.oldest = newer }
        }
        adjust(name, bytes: -nodes[Int(index)].size, count: -1)
    }

    private mutating func adjust(_ name: EvictionQueue, bytes: Int, count: Int) {
        switch name {
        case .small: small.bytes += bytes; small.count += count
        case .main: main.bytes += bytes; main.count += count
        }
    }

    private mutating func release(_ index: UInt32) {
        nodes[Int(index)].candidate = nil
        nodes[Int(index)].newer = free
        free = index
    }
}
