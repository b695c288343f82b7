/// Who gets what a fetch brings, and whether it goes on without them.
///
/// A fetch that nobody can join is for its leader alone, who is no waiter of the operation: both are on one loop, so
/// what it waits for goes to it without a lock, the mailbox, or an object.
enum Recipients {
    /// Whoever waits for the fetch's operation, which knows them.
    case waiters
    /// `isDispensable`: whether the fetch goes on without it.
    case leader(Presence, isDispensable: Bool)

    /// ```
    /// waiting ─outcome→ served ─leaves→ gone
    ///    └────────────leaves────────────↗
    /// ```
    enum Presence { case waiting, served, gone }

    /// - Returns: whether the leader is to be given the outcome: once at most, and not after it has left.
    mutating func leaderTakesOutcome() -> Bool {
        guard case .leader(.waiting, let isDispensable) = self else { return false }
        self = .leader(.served, isDispensable: isDispensable)
        return true
    }

    mutating func leaderLeaves() -> (wasWaiting: Bool, isDispensable: Bool) {
        guard case .leader(let former, let isDispensable) = self else { return (false, false) }
        self = .leader(.gone, isDispensable: isDispensable)
        return (former == .waiting, isDispensable)
    }
}
