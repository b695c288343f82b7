/// What `S3FIFO` can hold: something that counts how often it is used.
///
/// The counter is the candidate's own, so that a hit bumps it without the queues' lock.
public protocol EvictionCandidate {
    /// The counter, 0 to 3; more than one use in probation earns a place in the main queue.
    var frequency: UInt8 { get }
    func setFrequency(_ frequency: UInt8)
    /// Tells it, in the ghost queue, from others that have its hash: variants of one URL.
    var distinction: UInt32 { get }
    /// Whether its bytes would not be free if it were evicted now: it is passed over.
    var isInUse: Bool { get }
}

extension EvictionCandidate {
    /// 0: its hash alone tells it from others.
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
/// What is in use makes another lap in its queue, neither promoted nor less valued for it.
///
/// Only the order and the choice are here: no clock, no lock, no budget. The caller evicts until enough is free. The
/// queues are doubly linked through one array, so that `remove` leaves nothing behind: a resource that is stored over
/// and over without any eviction would otherwise pile up dead entries.
public struct S3FIFO<Candidate: EvictionCandidate> {
    /// Where a candidate stands, until it is evicted or removed.
    public struct Slot: Sendable, Equatable {
        let index: UInt32
    }

    /// What was given up.
    public struct Eviction {
        /// What stood there, and the hash it was inserted with.
        public let candidate: Candidate
        public let hash: UInt64
        /// Where it stood. Free for the next `insert`.
        public let slot: Slot
        public let queue: EvictionQueue
    }

    private struct Node {
        var candidate: Candidate?
        var hash: UInt64
        /// The size, and in the lowest bit the queue: a node is 32 bytes, of which there is one for each response.
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
    /// Uses in probation that earn a place in the main queue. Promoting on the first use keeps more of a cyclic scan,
    /// but far less where things are requested exactly twice (docs/benchmarks.md, Cache efficiency).
    private static var promotion: UInt8 { 2 }
    /// Laps granted in one eviction before the oldest goes whatever it earned, or, where it is in use, none does: the
    /// caller holds a lock. The next eviction goes on behind those that made a lap.
    package static var mostLaps: Int { 256 }

    private let smallPercent: Int
    private var nodes: [Node] = []
    private var free = S3FIFO.none
    private var small = Queue()
    private var main = Queue()
    private var ghost = GhostQueue()

    /// - Parameter smallPercent: share of all bytes that probation may hold before it is evicted from first.
    public init(smallPercent: Int) { self.smallPercent = smallPercent }

    /// Candidates in both queues.
    var count: Int { small.count + main.count }
    /// Sum of the candidates' sizes.
    public var bytes: Int { small.bytes + main.bytes }

    /// Inserts a new candidate: into probation, or straight into the main queue when it was evicted from probation
    /// lately.
    /// - Parameter hash: identifies it in the ghost queue, with its `distinction`.
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
            // By a quarter, not doubled: unused nodes are memory outside the budget.
            if nodes.count == nodes.capacity { nodes.reserveCapacity(nodes.count + max(16, nodes.count / 4)) }
            nodes.append(node)
        }
        link(index, to: queue)
        return Slot(index: index)
    }

    /// Puts another candidate in the same place: an update keeps its turn.
    public mutating func replace(_ slot: Slot, with candidate: Candidate, size: Int) {
        let index = Int(slot.index)
        adjust(nodes[index].queue, bytes: size - nodes[index].size, count: 0)
        nodes[index].size = size
        nodes[index].candidate = candidate
    }

    /// Takes a candidate out; its slot may be given to another.
    public mutating func remove(_ slot: Slot) {
        unlink(slot.index)
        release(slot.index)
    }

    /// The queue that the candidate at `slot` stands in.
    func queue(of slot: Slot) -> EvictionQueue { nodes[Int(slot.index)].queue }

    /// Takes out a candidate as an eviction does: what was in probation is remembered.
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

    /// Takes out the least valuable candidate, or `nil` when there is none, or none was found before the laps were used
    /// up.
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
        // Each once at most.
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
