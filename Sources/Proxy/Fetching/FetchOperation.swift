import Bytes
import Coalescing
import Libevent
import Synchronization
import Upstream

/// A fetch as all loops see it: the `CoalescibleOperation` that waiters join. The work itself is a `Fetch`, which
/// belongs to the loop of the client that led.
final class FetchOperation: CoalescibleOperation<FetchedResponse> {
    /// In the access log and `/status`: one number in all the lines of one fetch.
    nonisolated let number: UInt64
    nonisolated let plan: FetchPlan
    /// When it was made, in nanoseconds of the monotonic clock.
    nonisolated let made: Int64
    /// Interim responses so far, and who is told of them.
    nonisolated let interims = InterimResponses()
    /// The fetch, for its own loop only.
    nonisolated let work: LoopOwned<Fetch>
    /// Where it is for its leader alone, who is not one of its waiters: whether that one is still there. For other
    /// loops to read.
    private nonisolated let hasLeader = Atomic(true)
    /// Of the request that led.
    private nonisolated let leadingHead: SharedHead
    private nonisolated let joinedByUnlike = Atomic(false)

    nonisolated init(
        number: UInt64, leader: SharedHead, plan: FetchPlan, made: Int64, work: consuming LoopOwned<Fetch>
    ) {
        self.number = number
        leadingHead = leader
        self.plan = plan
        self.made = made
        self.work = work
        super.init()
    }

    nonisolated var key: FetchKey { plan.key }

    /// Whether a request has joined that is not alike its leader's, as far as this loop has heard.
    nonisolated var wasJoinedByUnlike: Bool { joinedByUnlike.load(ordering: .relaxed) }

    /// `request` has joined. On any loop.
    nonisolated func noteJoin(of request: borrowing ClientRequest) {
        if !wasJoinedByUnlike, !request.isAlike(leadingHead) { joinedByUnlike.store(true, ordering: .relaxed) }
    }

    /// The leader that it is for alone leaves. On the fetch's own loop.
    /// - Returns: whether it still waited.
    nonisolated func leaderLeaves() -> Bool {
        hasLeader.store(false, ordering: .relaxed)
        return work.use { $0.leaderLeaves(self) }
    }

    /// If it is cancelled while it waits for its slot, there is no work to stop yet that would tell its leader.
    nonisolated func tellLeaderIfCancelled() {
        add(
            OperationObserver(of: .cancelled, on: work.handle) {
                ($0.operation as? FetchOperation)?.work.value.end(.cancelled)
            })
    }

    /// Whether it has got its slot, or has ended. Any thread; takes its lock.
    nonisolated var hasBegun: Bool {
        switch phase {
        case .pending, .ready: false
        case .executing, .finished, .cancelled: true
        }
    }

    /// How many wait for it or still read its response.
    nonisolated var clientCount: Int {
        plan.isShared ? waiterCount : hasLeader.load(ordering: .relaxed) ? 1 : 0
    }

    nonisolated override func execute() {
        // Nothing is reported from inside `begin`, so it needs no turn of the loop.
        if work.handle.isCurrent { return work.use { $0.begin(for: self) } }
        work.handle.post { [self] in work.value.begin(for: self) }
    }

    nonisolated override func cancelWork() {
        work.handle.post { [self] in work.value.end(.cancelled) }
    }
}

/// Who waits for a fetch on one loop: a transaction, or a crowd of them. A base class for the same reason as
/// `DeadlineTarget`.
class FetchWaiter: DeadlineTarget {
    /// A 1xx, as it goes to the client.
    func received(interim: ByteSlice) {}
    /// Once.
    func received(_ result: Result<FetchedResponse, OperationError>) {}
}
