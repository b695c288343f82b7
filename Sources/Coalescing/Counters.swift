public import Synchronization

/// The counts of one shard since it was made. Relaxed: each number is exact, but all numbers together are not a
/// snapshot of one moment.
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

/// The counts of a manager so far, and its operations in flight now.
public struct OperationQueueSnapshot: Sendable, Equatable {
    /// Operations started, plain ones included.
    public var started = 0
    /// Waiters that joined an operation in flight before its value was there.
    public var joined = 0
    /// Waiters that joined after the value was there, and were served at once.
    public var joinedLate = 0
    /// How often `unless` returned a result.
    public var found = 0
    /// Waiters that could not be served with the value.
    public var released = 0
    /// Waiters and operations turned away: `.full`, `.queueFull`, `.foreign`.
    public var refused = 0
    /// How often a new operation took the place of one that was closed or whose value was not accepted, and that lived
    /// on.
    public var replaced = 0
    /// Operations that ended with success.
    public var finished = 0
    /// Operations that ended with an error other than `.cancelled`.
    public var failed = 0
    /// Operations that were cancelled, whether they had begun or not.
    public var cancelled = 0
    /// Operations that have not ended, now.
    public var inFlight = 0
    /// Operations in flight that have not begun.
    public var queued = 0

    /// A snapshot with all counts at zero.
    public init() {}

    /// Adds the counts of `other`: the sum of two managers.
    public mutating func add(_ other: OperationQueueSnapshot) {
        for count in Self.counts { self[keyPath: count] += other[keyPath: count] }
    }

    private static let counts: [any WritableKeyPath<Self, Int> & Sendable] = [
        \.started, \.joined, \.joinedLate, \.found, \.released, \.refused, \.replaced, \.finished, \.failed,
        \.cancelled, \.inFlight, \.queued,
    ]

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
