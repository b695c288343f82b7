/// The timer wheel without a clock: entries lie in rings by the tick at which they are due, in one array of nodes.
///
/// Inserting, moving and removing take constant time. An entry that is due beyond one turn of the wheel lies in the
/// ring of its tick and is passed over once a turn. Time is an argument and counts in ticks.
///
/// absent ─insert→ waiting ─collect→ due ─nextDue→ firing ─move→ waiting; ─remove→ absent from each of them
struct Wheel<Payload> {
    /// The rings are circular lists with a sentinel node each, so that unlinking need not know the ring.
    private struct Node {
        var next: UInt32
        var previous: UInt32
        /// Odd while in use, so that no entry is ever `Deadline.none`.
        var generation: UInt32 = 0
        var tick: Int64 = 0
        var payload: Payload?
    }

    private var nodes: [Node]
    private let ringCount: UInt32
    private var dueRing: UInt32 { ringCount }
    private var freeRing: UInt32 { ringCount + 1 }
    /// All entries due up to this tick have been collected.
    private(set) var currentTick: Int64 = 0
    private(set) var count = 0

    /// - Parameter ringCount: a power of two.
    init(ringCount: Int) {
        precondition(ringCount > 0 && ringCount & (ringCount - 1) == 0, "rings are counted in powers of two")
        self.ringCount = UInt32(ringCount)
        nodes = (0..<UInt32(ringCount) + 2).map { Node(next: $0, previous: $0) }
    }

    /// A `tick` in the past counts as the next one, so that an entry never fires in the turn that inserted it.
    mutating func insert(_ payload: Payload, at tick: Int64) -> Deadline {
        var index = nodes[Int(freeRing)].next
        if index == freeRing {
            index = UInt32(nodes.count)
            nodes.append(Node(next: index, previous: index))
        } else {
            unlink(index)
        }
        count += 1
        nodes[Int(index)].generation &+= 1
        nodes[Int(index)].payload = payload
        place(index, at: tick)
        return Deadline(index: index, generation: nodes[Int(index)].generation)
    }

    /// Returns the payload; `nil` if the entry no longer exists.
    @discardableResult
    mutating func remove(_ deadline: Deadline) -> Payload? {
        guard contains(deadline) else { return nil }
        let payload = nodes[Int(deadline.index)].payload.take()
        nodes[Int(deadline.index)].generation &+= 1
        unlink(deadline.index)
        link(deadline.index, into: freeRing)
        count -= 1
        return payload
    }

    /// Makes the entry due at `tick` instead; returns false if the entry no longer exists.
    @discardableResult
    mutating func move(_ deadline: Deadline, to tick: Int64) -> Bool {
        guard contains(deadline) else { return false }
        unlink(deadline.index)
        place(deadline.index, at: tick)
        return true
    }

    func contains(_ deadline: Deadline) -> Bool {
        !deadline.isNone && Int(deadline.index) < nodes.count
            && nodes[Int(deadline.index)].generation == deadline.generation
    }

    /// Moves the entries due up to `tick` into the due ring, from which `nextDue` returns them.
    mutating func collect(upTo tick: Int64) {
        guard tick > currentTick else { return }
        // One turn visits every ring, however long the loop was held up.
        let first = max(currentTick + 1, tick - Int64(ringCount) + 1)
        for visited in first...tick {
            let ring = ring(of: visited)
            var index = nodes[Int(ring)].next
            while index != ring {
                let next = nodes[Int(index)].next
                if nodes[Int(index)].tick <= tick {
                    unlink(index)
                    link(index, into: dueRing)
                }
                index = next
            }
        }
        currentTick = tick
    }

    /// Whether `nextDue` has an entry to return.
    var hasDue: Bool { nodes[Int(dueRing)].next != dueRing }

    /// Takes out the next due entry. From now on it is firing, lies in no ring, and must be moved or removed.
    mutating func nextDue() -> (Deadline, Payload)? {
        let index = nodes[Int(dueRing)].next
        guard index != dueRing, let payload = nodes[Int(index)].payload else { return nil }
        unlink(index)
        return (Deadline(index: index, generation: nodes[Int(index)].generation), payload)
    }

    private func ring(of tick: Int64) -> UInt32 {
        UInt32(truncatingIfNeeded: tick) & (ringCount - 1)
    }

    private mutating func place(_ index: UInt32, at tick: Int64) {
        let tick = max(tick, currentTick + 1)
        nodes[Int(index)].tick = tick
        link(index, into: ring(of: tick))
    }

    private mutating func link(_ index: UInt32, into ring: UInt32) {
        let last = nodes[Int(ring)].previous
        nodes[Int(index)].previous = last
        nodes[Int(index)].next = ring
        nodes[Int(last)].next = index
        nodes[Int(ring)].previous = index
    }

    /// Links the node to itself, so that unlinking twice is harmless.
    private mutating func unlink(_ index: UInt32) {
        let (previous, next) = (nodes[Int(index)].previous, nodes[Int(index)].next)
        nodes[Int(previous)].next = next
        nodes[Int(next)].previous = previous
        nodes[Int(index)].next = index
        nodes[Int(index)].previous = index
    }
}

/// Names one entry of a `DeadlineWheel`. A stale deadline names no entry, even after its place was used again.
public struct Deadline: Hashable, Sendable {
    let index: UInt32
    let generation: UInt32

    /// The deadline that names no entry.
    public static let none = Deadline(index: 0, generation: 0)
    public var isNone: Bool { generation == 0 }
}
