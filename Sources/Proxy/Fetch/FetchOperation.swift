import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Routing
import Synchronization
import Upstream

/// The part of a fetch that all loops see: the `CoalescibleOperation` that requests join. Its `Fetch`, which does the
/// work, belongs to the loop of the client that led.
///
/// The requests of one loop wait together and are one waiter (`FetchWaiter`). The waiter of the fetch's own loop is
/// told by the fetch itself, without a lock or the mailbox; those of other loops are told by the operation.
final class FetchOperation: CoalescibleOperation<FetchedResponse>, @unchecked Sendable {
    /// The number in the access log and `/status`: the same in all lines of one fetch.
    nonisolated let number: UInt64
    nonisolated let key: FetchKey
    /// When the operation was made, in nanoseconds of the monotonic clock.
    nonisolated let made: Int64
    /// The waiters of the other loops, and the interim responses for them.
    nonisolated let elsewhere = WaitersElsewhere()
    /// The fetch, used on its own loop only.
    nonisolated let work: LoopOwned<Fetch>
    /// The request that led.
    private nonisolated let leader: ClientRequest
    private nonisolated let joinedByNonmatching = Atomic(false)
    private nonisolated let invalidated = Atomic(false)

    /// - Parameter mostWaiters: how many requests may wait for the fetch or read its response at the same time.
    nonisolated init(of fetch: consuming Fetch, on loop: borrowing EventLoop, number: UInt64, mostWaiters: Int) {
        self.number = number
        leader = fetch.plan.request
        key = fetch.plan.key
        made = loop.now
        let isRefresh = fetch.plan.isRefresh
        work = LoopOwned(fetch, on: loop)
        // A fetch that has not begun has no response to finish, so it is cancelled when its last client leaves, unless
        // it is a refresh. `Fetch` sets the policy from then on.
        super.init(home: loop.handle, waiterLimit: mostWaiters, lastLeavePolicy: isRefresh ? .goOn : .cancel)
    }

    /// The range that is requested; `nil`: the whole.
    nonisolated var range: ByteRangeSpec? {
        if case .part(let range, _) = key.kind { range } else { nil }
    }

    /// Whether a request that does not match the leader's has joined, as far as this loop has heard.
    nonisolated var wasJoinedByNonmatching: Bool { joinedByNonmatching.load(ordering: .relaxed) }

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
        if !wasJoinedByNonmatching, !request.matchesForSharing(leader) {
            joinedByNonmatching.store(true, ordering: .relaxed)
        }
    }

    // MARK: The waiters of each loop

    /// The waiter of the requests on this loop, if any waits.
    nonisolated func waiter(on loop: @autoclosure () -> LoopHandle) -> FetchWaiter? {
        work.handle.isCurrent ? work.use { $0.waiter } : elsewhere.waiter(on: loop())
    }

    /// From now on `waiter` gets the interim responses and the result, for the requests of its loop.
    /// - Returns: the interim responses so far.
    nonisolated func add(_ waiter: FetchWaiter, on loop: @autoclosure () -> EventLoop) -> [ByteSlice] {
        guard work.handle.isCurrent else { return elsewhere.add(LoopBound(waiter, on: loop())) }
        let (hasBegun, isObserved) = work.use { fetch in
            fetch.waiter = waiter
            return (fetch.hasBegun, fetch.isObserved)
        }
        if hasBegun { return work.use { $0.hasSharedInterims } ? elsewhere.interims : [] }
        if isObserved { return [] }
        work.use { $0.isObserved = true }
        // Without a slot there is no work to stop that would tell the fetch of its end.
        add(
            OperationObserver(of: .cancelled, on: work.handle) {
                ($0.operation as? FetchOperation)?.work.value.end(.cancelled)
            })
        return []
    }

    /// The waiter gets nothing more. No effect if another one has its place.
    nonisolated func remove(_ waiter: FetchWaiter, on loop: @autoclosure () -> LoopHandle) {
        guard work.handle.isCurrent else { return elsewhere.remove(waiter, on: loop()) }
        work.use { fetch in if fetch.waiter === waiter { fetch.waiter = nil } }
    }

    /// Whether the operation has got its slot, or has ended. Any thread; takes the operation's lock.
    nonisolated var hasBegun: Bool {
        switch phase {
        case .pending, .ready: false
        case .executing, .finished, .cancelled: true
        }
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

/// The requests of one loop that wait for one fetch (`WaiterGroup`), as the fetch sees them. A base class for the same
/// reason as `DeadlineTarget`.
class FetchWaiter: DeadlineTarget {
    /// Receives a 1xx response in the form that goes to the clients. The fetch tells its leader itself.
    func received(interim: ByteSlice) {}
    /// Receives the result. Called once. Sends nothing from inside the call.
    func received(_ result: Result<FetchedResponse, OperationError>) {}
}
