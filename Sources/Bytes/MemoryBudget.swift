public import Synchronization

/// A ceiling on bytes, shared by all loops. It covers bodies that still arrive, stored bodies, and bodies that were
/// evicted while they are being sent. A caller that cannot reserve must free memory, wait, or give up. No caller
/// exceeds the ceiling.
///
/// ```
/// 0           inUse                      used             limit
/// ├─────────────┼──────────resting─────────┼──────free──────┤
/// ```
///
/// *Resting* bytes are stored and not being sent: only their eviction frees memory at once. All others are *in use*.
public final class MemoryBudget: Sendable {
    /// The ceiling in bytes.
    public let limit: Int
    @usableFromInline let held = Atomic<Int>(0)
    private let idle = Atomic<Int>(0)

    public init(limit: Int) { self.limit = limit }

    /// Bytes reserved at this moment.
    public var used: Int { held.load(ordering: .relaxed) }
    /// Of the used bytes, the number that eviction would free.
    public var resting: Int { idle.load(ordering: .relaxed) }
    /// Of the used bytes, the number that eviction would not free.
    public var inUse: Int { max(0, used - resting) }

    /// Reserves `bytes`, or reserves nothing and returns `false`.
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

    /// Releases reserved bytes.
    public func release(_ bytes: Int) {
        held.subtract(bytes, ordering: .relaxed)
    }

    /// Counts `bytes` of the reserved bytes as resting from now on. A negative number counts them as in use again, or
    /// as released.
    public func rest(_ bytes: Int) {
        if bytes != 0 { idle.add(bytes, ordering: .relaxed) }
    }
}
