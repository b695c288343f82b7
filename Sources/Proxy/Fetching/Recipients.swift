/// The recipients of a fetch's result, and whether the fetch goes on without them.
///
/// A fetch that no request can join is for its leader alone, which is not a waiter of the operation: both are on one
/// loop, so the leader gets its result without a lock, the mailbox, or an object.
enum Recipients {
    /// The waiters of the fetch's operation, which knows them.
    case waiters
    /// `isDispensable`: whether the fetch goes on without the leader.
    case leader(Presence, isDispensable: Bool)

    /// ```
    /// waiting ─outcome→ served ─leaves→ gone
    ///    └────────────leaves────────────↗
    /// ```
    enum Presence { case waiting, served, gone }

    /// - Returns: whether the leader gets the outcome: at most once, and not after it has left.
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
