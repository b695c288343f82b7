import Bytes
import Coalescing
import Libevent
import Synchronization
import Upstream

/// The part of a fetch that all loops see: the `CoalescibleOperation` that waiters join. Its `Fetch`, which does the
/// work, belongs to the loop of the client that led.
final class FetchOperation: CoalescibleOperation<FetchedResponse> {
    /// The number in the access log and `/status`: the same in all lines of one fetch.
    nonisolated let number: UInt64
    nonisolated let plan: FetchPlan
    /// When the operation was made, in nanoseconds of the monotonic clock.
    nonisolated let made: Int64
    /// The interim responses so far, and their listeners.
    nonisolated let interims = InterimResponses()
    /// The fetch, used on its own loop only.
    nonisolated let work: LoopOwned<Fetch>
    /// For a fetch that is for its leader alone, which is not one of the waiters: whether the leader is still there.
    /// Other loops read it.
    private nonisolated let hasLeader = Atomic(true)
    /// The request that led.
    private nonisolated let leader: ClientRequest
    private nonisolated let joinedByUnlike = Atomic(false)
    private nonisolated let invalidated = Atomic(false)

    nonisolated init(
        number: UInt64, leader: ClientRequest, plan: FetchPlan, made: Int64, work: consuming LoopOwned<Fetch>
    ) {
        self.number = number
        self.leader = leader
        self.plan = plan
        self.made = made
        self.work = work
        super.init()
    }

    nonisolated var key: FetchKey { plan.key }

    /// Whether a request that does not match the leader's has joined, as far as this loop has heard.
    nonisolated var wasJoinedByUnlike: Bool { joinedByUnlike.load(ordering: .relaxed) }

    /// Whether the URL of the response was invalidated or purged since the fetch began: then the response is not
    /// stored.
    nonisolated var wasInvalidated: Bool { invalidated.load(ordering: .relaxed) }

    /// Marks the operation as invalidated: its response goes only to the requests that have joined. Any loop.
    nonisolated func invalidate() {
        invalidated.store(true, ordering: .relaxed)
        close()
    }

    /// Notes that `request` has joined. Called on any loop.
    nonisolated func noteJoin(of request: borrowing ClientRequest) {
        if !wasJoinedByUnlike, !request.isAlike(leader) { joinedByUnlike.store(true, ordering: .relaxed) }
    }

    /// The leader of a fetch that is for it alone leaves. Called on the fetch's own loop.
    /// - Returns: whether the leader still waited.
    nonisolated func leaderLeaves() -> Bool {
        hasLeader.store(false, ordering: .relaxed)
        return work.use { $0.leaderLeaves(self) }
    }

    /// Ends the `Fetch` if the operation is cancelled while it waits for its slot, when there is no work to stop that
    /// would tell the leader.
    nonisolated func tellLeaderIfCancelled() {
        add(
            OperationObserver(of: .cancelled, on: work.handle) {
                ($0.operation as? FetchOperation)?.work.value.end(.cancelled)
            })
    }

    /// Whether the operation has got its slot, or has ended. Any thread; takes the operation's lock.
    nonisolated var hasBegun: Bool {
        switch phase {
        case .pending, .ready: false
        case .executing, .finished, .cancelled: true
        }
    }

    /// The number of clients that wait for the fetch or still read its response.
    nonisolated var clientCount: Int {
        plan.isShared ? waiterCount : hasLeader.load(ordering: .relaxed) ? 1 : 0
    }

    nonisolated override func execute() {
        // `begin` reports no result from inside the call, so it needs no job of its own on the loop.
        if work.handle.isCurrent { return work.use { $0.begin(for: self) } }
        work.handle.post { [self] in work.value.begin(for: self) }
    }

    nonisolated override func cancelWork() {
        work.handle.post { [self] in work.value.end(.cancelled) }
    }
}

/// A waiter for a fetch on one loop: a transaction, or a crowd of them. A base class for the same reason as
/// `DeadlineTarget`.
class FetchWaiter: DeadlineTarget {
    /// Receives a 1xx response in the form that goes to the client.
    func received(interim: ByteSlice) {}
    /// Receives the result. Called once.
    func received(_ result: Result<FetchedResponse, OperationError>) {}
}
