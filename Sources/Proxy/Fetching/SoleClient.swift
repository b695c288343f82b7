/// What a fetch that is for one client alone knows of it. That client is no waiter of the operation: both are on one loop and nobody else can join, so
/// what it waits for goes to it without a lock, the mailbox, or an object.
///
/// ```
/// waiting ─outcome→ served ─leaves→ gone
///    └────────────leaves────────────↗
/// ```
struct SoleClient {
    private enum State { case waiting, served, gone }

    private var state = State.waiting
    /// Whether the fetch goes on without it.
    var isDispensable = false

    var isGone: Bool { state == .gone }

    /// - Returns: whether it gets the outcome: once at most, and not after it has left.
    mutating func takesOutcome() -> Bool {
        guard state == .waiting else { return false }
        state = .served
        return true
    }

    /// - Returns: whether it still waited.
    mutating func leave() -> Bool {
        let former = state
        state = .gone
        return former == .waiting
    }
}
