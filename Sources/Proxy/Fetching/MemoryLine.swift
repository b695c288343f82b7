import Bytes
import Synchronization

/// The order in which fetches get memory once there is too little: bodies that have begun, and heads, each of them first
/// come, first served. A body that has waited for `bodyPatience` bars heads: its clients have a head already, and are cut
/// off if the rest does not come; who has no head yet can be told 503.
///
/// Without it, whoever asks just as memory is given back would get it: a newcomer, more often than one of hundreds who
/// look again every `Worker.memoryRetryInterval`. Bodies do not bar heads from the start, because one that waits a moment
/// for each piece still goes on, and so more clients are served with the same memory.
///
/// ```
/// has memory ─none, or others of its kind stand in line→ stands in line ─among the first, and there is some→ has memory
/// ```
///
/// Nobody is told when memory is given back: the first look now and then. Who finds some wakes the first that still
/// waits, who looks at once: as long as there is memory, one after another gets it. A body leaves its place to look for
/// memory, and gets it back if there is none.
///
/// Shared by all loops. A mutex guards the line; who has no place asks an atomic first, which says 'nobody' nearly always.
final class MemoryLine: Sendable {
    /// What is to be put into memory.
    enum Need { case body, head }

    /// A place in the line, which its owner gives up by letting go of it.
    final class Place: Sendable {
        private let line: MemoryLine
        fileprivate let need: Need

        fileprivate init(in line: MemoryLine, _ need: Need) {
            self.line = line
            self.need = need
        }

        deinit { line.leave(ObjectIdentifier(self), need) }
    }

    private struct Entry {
        let place: ObjectIdentifier
        /// Nanosecond of the monotonic clock.
        let since: Int64
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

    /// How many of a kind may look for memory at the same time: more than one, so that one which has nothing to look for
    /// any more keeps nobody waiting.
    static let front = 8
    /// After so many nanoseconds a body goes before all heads.
    static let bodyPatience: Int64 = 1_000_000_000

    private let state = Guarded(State())
    /// How many stand in each list.
    private let bodies = Atomic<Int>(0)
    private let heads = Atomic<Int>(0)

    /// - Parameters:
    ///   - since: since when it waits, a nanosecond of the monotonic clock.
    ///   - isFirst: it had its turn, and found nothing: before all others of its kind.
    ///   - wake: called by `wakeFirst`.
    func enter(_ need: Need, since: Int64, isFirst: Bool, wake: @escaping @Sendable () -> Void) -> Place {
        let place = Place(in: self, need)
        let entry = Entry(place: ObjectIdentifier(place), since: since, wake: wake)
        state.withLock { $0[need].insert(entry, at: isFirst ? 0 : $0[need].count) }
        change(need, by: 1)
        return place
    }

    private func leave(_ place: ObjectIdentifier, _ need: Need) {
        state.withLock { $0[need].removeAll { $0.place == place } }
        change(need, by: -1)
    }

    /// Whether anybody waits. Any thread.
    var isEmpty: Bool { bodies.load(ordering: .relaxed) == 0 && heads.load(ordering: .relaxed) == 0 }

    /// There is memory again: calls the first `wake` of the kind, on this thread and not under the lock. Any thread.
    func wakeFirst(_ need: Need) {
        state.withLock { $0[need].first }?.wake()
    }

    private func change(_ need: Need, by count: Int) {
        switch need {
        case .body: bodies.add(count, ordering: .relaxed)
        case .head: heads.add(count, ordering: .relaxed)
        }
    }

    /// Whether who stands at `place`, or nowhere, may take memory for `need` now, before those in line. Any thread.
    /// - Parameter now: nanosecond of the monotonic clock.
    func letsThrough(_ place: Place?, for need: Need, at now: Int64) -> Bool {
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
                // Who looked in vain is the first, not the oldest.
                if state.bodies.contains(where: { now - $0.since >= Self.bodyPatience }) { return false }
                return identifier.map { own in state.heads.prefix(Self.front).contains { $0.place == own } } ?? true
            }
        }
    }
}
