import Bytes
import Synchronization

/// The order in which fetches get memory when there is too little. It has two lists, each first come, first served:
/// bodies that have begun, and heads. A body that has waited for `bodyPatience` bars heads: its clients have a head
/// already, and are cut off if the rest does not come; a client without a head can still be sent 503.
///
/// Without the line, a fetch that asks just as memory is released would get it: a newcomer, more often than one of
/// hundreds that retry every `MemoryWait.retryInterval`. Bodies do not bar heads from the start: a body that waits a
/// moment for each piece still goes on, and so more clients are served with the same memory.
///
/// ```
/// has memory ─none left, or others of its kind in line→ in line ─among the first, and memory is free→ has memory
/// ```
///
/// Releasing memory notifies no fetch: the first in line poll, and keep their places until they find memory. A fetch
/// that finds memory wakes the first that still waits, which tries at once: as long as there is memory, one after
/// another gets it.
///
/// Shared by all loops. A mutex guards the line; a fetch without a place first reads an atomic, which nearly always
/// says that the line is empty.
final class MemoryLine: Sendable {
    /// The part of a response for which a fetch needs memory.
    enum Need { case body, head }

    private struct Entry {
        let place: ObjectIdentifier
        /// Nanosecond of the monotonic clock.
        var since: Int64
        let wake: @Sendable () -> Void
    }

    private struct State {
        var bodies: [Entry] = []
        var heads: [Entry] = []

        subscript(need: Need) -> [Entry] {
            get {
                switch need {
                case .body: bodies
                case .head: heads
                }
            }
            _modify {
                switch need {
                case .body: yield &bodies
                case .head: yield &heads
                }
            }
        }
    }

    /// How many of a kind may look for memory at the same time: more than one, so that a fetch that needs none any more
    /// holds up no other.
    static let front = 8
    /// The time, in nanoseconds, after which a waiting body goes before all heads.
    static let bodyPatience: Int64 = 1_000_000_000

    private let state = Guarded(State())
    /// The number of entries in each list.
    private let bodies = Atomic<Int>(0)
    private let heads = Atomic<Int>(0)

    fileprivate func enter(_ place: MemoryWait, wake: @escaping @Sendable () -> Void) {
        let entry = Entry(place: ObjectIdentifier(place), since: place.since, wake: wake)
        state.withLock { $0[place.need].append(entry) }
        change(place.need, by: 1)
    }

    fileprivate func change(_ place: MemoryWait) {
        let identifier = ObjectIdentifier(place)
        state.withLock { state in
            guard let index = state[place.need].firstIndex(where: { $0.place == identifier }) else { return }
            state[place.need][index].since = place.since
        }
    }

    fileprivate func leave(_ place: ObjectIdentifier, _ need: Need) {
        state.withLock { $0[need].removeAll { $0.place == place } }
        change(need, by: -1)
    }

    /// Whether no fetch waits. Any thread.
    var isEmpty: Bool { bodies.load(ordering: .relaxed) == 0 && heads.load(ordering: .relaxed) == 0 }

    /// Call when there is memory again: calls the first `wake` of the kind, on this thread and not under the lock. Any
    /// thread.
    func wakeFirst(_ need: Need) {
        state.withLock { $0[need].first }?.wake()
    }

    private func change(_ need: Need, by count: Int) {
        switch need {
        case .body: bodies.add(count, ordering: .relaxed)
        case .head: heads.add(count, ordering: .relaxed)
        }
    }

    /// Whether the fetch at `place`, or one without a place, may take memory for `need` now, before the others in line.
    /// Any thread.
    /// - Parameter now: nanosecond of the monotonic clock.
    func letsThrough(_ place: MemoryWait?, for need: Need, at now: Int64) -> Bool {
        let hasBodies = bodies.load(ordering: .relaxed) > 0
        switch need {
        case .body:
            if !hasBodies { return true }
            guard let place else { return false }
            let identifier = ObjectIdentifier(place)
            return state.withLock { $0.bodies.prefix(Self.front).contains { $0.place == identifier } }
        case .head:
            if place == nil {
                if heads.load(ordering: .relaxed) > 0 { return false }
                if !hasBodies { return true }
            }
            let identifier = place.map { ObjectIdentifier($0) }
            return state.withLock { state in
                // A body that found some memory waits anew, so the first is not always the oldest.
                if state.bodies.contains(where: { now - $0.since >= Self.bodyPatience }) { return false }
                return identifier.map { own in state.heads.prefix(Self.front).contains { $0.place == own } } ?? true
            }
        }
    }
}

/// The wait of one fetch for memory, and so its place in the line, from which it looks for memory from time to time.
/// Ends with `leave`, or when its owner, the fetch's `ArrivingBody`, releases it. Belongs to the fetch's loop.
final class MemoryWait {
    /// The interval at which a waiting body looks for memory, in nanoseconds.
    static let retryInterval: Int64 = 50_000_000
    /// How long a response's head waits for memory for its content, in nanoseconds: in a burst, other bodies hold the
    /// memory for about a second.
    static let headPatience: Int64 = 2_000_000_000

    /// When memory was missing for the first time, or last found, in nanoseconds of the loop's clock.
    private(set) var since: Int64
    let need: MemoryLine.Need
    private let line: MemoryLine
    private(set) var isInLine = true

    /// - Parameters:
    ///   - now: nanoseconds of the loop's clock.
    ///   - wake: called on any thread when the fetch is the first of its kind in line and there is memory.
    init(for need: MemoryLine.Need, since now: Int64, in line: MemoryLine, wake: @escaping @Sendable () -> Void) {
        (self.need, self.line, since) = (need, line, now)
        line.enter(self, wake: wake)
    }

    /// Some memory was found, and more is wanted: the time of the wait begins anew.
    func foundSome(at now: Int64) {
        since = now
        line.change(self)
    }

    /// Leaves the line, at once: the next fetch can be woken.
    func leave() {
        if isInLine { line.leave(ObjectIdentifier(self), need) }
        isInLine = false
    }

    deinit { leave() }
}
