public import Synchronization

/// A ceiling on bytes, shared by all loops: what bodies hold, whether they still arrive, are stored, or were evicted
/// while somebody reads them. A caller that cannot reserve must make room, wait, or give up; none goes over.
///
/// ```
/// 0           inUse                      used             limit
/// ├─────────────┼──────────resting─────────┼──────free──────┤
/// ```
///
/// *Resting* is what the store has and nobody reads: only that is free again once it is evicted. All else is *in use*.
public final class MemoryBudget: Sendable {
    /// The ceiling in bytes.
    public let limit: Int
    @usableFromInline let held = Atomic<Int>(0)
    private let idle = Atomic<Int>(0)

    public init(limit: Int) { self.limit = limit }

    /// Bytes reserved at this moment.
    public var used: Int { held.load(ordering: .relaxed) }
    /// Of these, bytes that eviction would free.
    public var resting: Int { idle.load(ordering: .relaxed) }
    /// Of these, bytes that eviction would not free.
    public var inUse: Int { max(0, used - resting) }

    /// Reserves `bytes`, or nothing and answers `false`.
    public func reserve(_ bytes: Int) -> Bool {
        var current = held.load(ordering: .relaxed)
        while true {
            guard bytes <= limit - current else { return false }
            let (done, now) = held.weakCompareExchange(
                expected: current, desired: current + bytes, ordering: .relaxed
            )
            if done { return true }
            current = now
        }
    }

    /// Gives back what was reserved.
    public func release(_ bytes: Int) {
        held.subtract(bytes, ordering: .relaxed)
    }

    /// Counts `bytes` of those reserved as resting from now on; where negative, as in use again, or given back.
    public func rest(_ bytes: Int) {
        if bytes != 0 { idle.add(bytes, ordering: .relaxed) }
    }
}
