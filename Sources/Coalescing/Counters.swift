public import Synchronization

/// What one shard has counted since it was made. Relaxed: each number is exact, their sum at one moment is not a
/// snapshot.
@usableFromInline
final class ShardCounters: Sendable {
    @usableFromInline let started = Atomic(0)
    @usableFromInline let joined = Atomic(0)
    @usableFromInline let joinedLate = Atomic(0)
    @usableFromInline let found = Atomic(0)
    let released = Atomic(0)
    @usableFromInline let refused = Atomic(0)
    @usableFromInline let replaced = Atomic(0)
    let finished = Atomic(0)
    let failed = Atomic(0)
    let cancelled = Atomic(0)

    init() {}
}

/// What a manager has done so far and has in flight now.
public struct OperationQueueSnapshot: Sendable, Equatable {
    /// Operations started, plain ones included.
    public var started = 0
    /// Waiters that joined an operation in flight before its value was there.
    public var joined = 0
    /// Waiters that joined after that and were served at once.
    public var joinedLate = 0
    /// Times that `unless` had the answer.
    public var found = 0
    /// Waiters that could not be served with the value.
    public var released = 0
    /// Waiters and operations turned away: `.full`, `.queueFull`, `.foreign`.
    public var refused = 0
    /// Times that a new operation took the place of one that was closed or not acceptable and lived on.
    public var replaced = 0
    /// Operations that ended with success.
    public var finished = 0
    /// Operations that ended with an error other than `.cancelled`.
    public var failed = 0
    /// Operations that were cancelled, whether they had begun or not.
    public var cancelled = 0
    /// Operations not ended, now.
    public var inFlight = 0
    /// Operations in flight that have not begun.
    public var queued = 0

    /// A snapshot with nothing done yet.
    public init() {}

    /// Counts what `other` did and has in flight too: the sum of two managers.
    public mutating func add(_ other: OperationQueueSnapshot) {
        started += other.started
        joined += other.joined
        joinedLate += other.joinedLate
        found += other.found
        released += other.released
        refused += other.refused
        replaced += other.replaced
        finished += other.finished
        failed += other.failed
        cancelled += other.cancelled
        inFlight += other.inFlight
        queued += other.queued
    }

    mutating func add(_ counters: ShardCounters) {
        started += counters.started.load(ordering: .relaxed)
        joined += counters.joined.load(ordering: .relaxed)
        joinedLate += counters.joinedLate.load(ordering: .relaxed)
        found += counters.found.load(ordering: .relaxed)
        released += counters.released.load(ordering: .relaxed)
        refused += counters.refused.load(ordering: .relaxed)
        replaced += counters.replaced.load(ordering: .relaxed)
        finished += counters.finished.load(ordering: .relaxed)
        failed += counters.failed.load(ordering: .relaxed)
        cancelled += counters.cancelled.load(ordering: .relaxed)
    }
}

extension Atomic<Int> {
    @inlinable
    borrowing func count(_ times: Int = 1) {
        _ = wrappingAdd(times, ordering: .relaxed)
    }
}
