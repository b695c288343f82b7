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
/// Shared by all loops. A mutex guards each list; a fetch without a place reads only an atomic, which nearly always says
/// that the list is empty.
final class MemoryLine: Sendable {
    /// The part of a response for which a fetch needs memory.
    enum Need { case body, head }

    /// How many of a kind may look for memory at the same time: more than one, so that a fetch that needs none any more
    /// holds up no other.
    static let front = 8
    /// The time, in nanoseconds, after which a waiting body goes before all heads.
    static let bodyPatience: Int64 = 1_000_000_000

    private let bodies = Places()
    private let heads = Places()

    fileprivate func places(for need: Need) -> Places {
        switch need {
        case .body: bodies
        case .head: heads
        }
    }

    /// Whether no fetch waits. Any thread.
    var isEmpty: Bool { bodies.isEmpty && heads.isEmpty }

    /// Call when there is memory again: calls the first `wake` of the kind, on this thread and not under the lock. Any
    /// thread.
    func wakeFirst(_ need: Need) { places(for: need).first?.wake() }

    /// Whether the fetch of `wait`, or one that does not wait, may take memory for `need` now, before the others in
    /// line. Any thread.
    /// - Parameter now: nanosecond of the monotonic clock.
    func letsThrough(_ wait: MemoryWait?, for need: Need, at now: Int64) -> Bool {
        guard places(for: need).letThrough(wait?.place) else { return false }
        return need == .body || !bodies.haveWaited(since: now - Self.bodyPatience)
    }
}

/// The place of one fetch in the line.
private final class Place: Sendable {
    /// Nanosecond of the monotonic clock at which the wait began, or began anew.
    let since: Atomic<Int64>
    let wake: @Sendable () -> Void

    init(since: Int64, wake: @escaping @Sendable () -> Void) {
        self.since = Atomic(since)
        self.wake = wake
    }
}

/// The places of one kind, in order.
private final class Places: Sendable {
    private let list = Guarded<[Place]>([])
    private let count = Atomic<Int>(0)

    var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }
    var first: Place? { list.withLock { $0.first } }

    func append(_ place: Place) {
        list.withLock { $0.append(place) }
        count.add(1, ordering: .relaxed)
    }

    func remove(_ place: Place) {
        list.withLock { $0.removeAll { $0 === place } }
        count.subtract(1, ordering: .relaxed)
    }

    /// Whether `place` is among the first; without a place, whether there are no others.
    func letThrough(_ place: Place?) -> Bool {
        guard let place else { return isEmpty }
        return list.withLock { $0.prefix(MemoryLine.front).contains { $0 === place } }
    }

    /// Whether one of them has waited since `time`, or longer. A body that found some memory waits anew, so the first is
    /// not always the oldest.
    func haveWaited(since time: Int64) -> Bool {
        !isEmpty && list.withLock { $0.contains { $0.since.load(ordering: .relaxed) <= time } }
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

    let need: MemoryLine.Need
    fileprivate let place: Place
    private let line: MemoryLine
    private(set) var isInLine = true

    /// - Parameters:
    ///   - now: nanoseconds of the loop's clock.
    ///   - wake: called on any thread when the fetch is the first of its kind in line and there is memory.
    init(for need: MemoryLine.Need, since now: Int64, in line: MemoryLine, wake: @escaping @Sendable () -> Void) {
        (self.need, self.line) = (need, line)
        place = Place(since: now, wake: wake)
        line.places(for: need).append(place)
    }

    /// When memory was missing for the first time, or last found, in nanoseconds of the loop's clock.
    var since: Int64 { place.since.load(ordering: .relaxed) }

    /// Some memory was found, and more is wanted: the time of the wait begins anew.
    func foundSome(at now: Int64) { place.since.store(now, ordering: .relaxed) }

    /// Leaves the line, at once: the next fetch can be woken.
    func leave() {
        if isInLine { line.places(for: need).remove(place) }
        isInLine = false
    }

    deinit { leave() }
}
