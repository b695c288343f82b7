import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Telemetry

/// The way from a plan to the fetch that the request waits for: led, joined, or for it alone.
extension Transaction {
    /// Found under the table's lock instead of a fetch: the store or the query rules changed since the look-up. A
    /// resource is a snapshot, so another identity means that a response was stored, marked or dropped since; the
    /// request is looked up again. This makes look-up, join and lead one step.
    private enum Superseded: Sendable { case snapshot }

    /// - Parameter resource: the stored responses and notes from which the plan was made.
    func fetch(_ plan: FetchPlan, for request: ClientRequest, seen resource: CachedResource?) {
        noteAsking(by: plan)
        let fetches = worker.fetches(of: request)
        if plan.isShared, plan.range != nil {
            let advice = resource?.advice(at: worker.moment, hasAuthorization: request.hasAuthorization) ?? .share
            if advice != .askForPart, joinWhole(plan) { return }
            if joinLargerPart(plan) { return }
        }
        // Joining costs a cursor; only a new fetch needs memory.
        let isOverloaded = worker.isOverloaded
        if isOverloaded, fetches.operation(for: plan.key, as: FetchOperation.self) == nil {
            worker.notices.overloaded(worker.shared)
            return meets(.memory)
        }
        guard plan.isShared else {
            // The fetch delivers directly (`FetchLeader`).
            let nobody: Waiter<FetchedResponse>? = nil
            let operation = worker.makeFetch(request, arrival, plan, leader: self, content: content.takeAhead())
            return enqueued(
                fetches.enqueueAlone(operation, waiter: nobody, group: plan.group(ofFetchFor: request)), .alone)
        }
        let bound = LoopBound<FetchWaiter>(self, on: worker.loop)
        let waiter = waiter(bound)
        let store = worker.shared.store
        let result = fetches.enqueue(
            plan.key, waiter: waiter, priority: .normal,
            // A new fetch needs memory.
            replacesFull: worker.settings.coalescing.whenExceeded == .pass && !isOverloaded,
            unless: { () -> Superseded? in
                store.resource(request.key) != resource || worker.hasLearnt(about: request) ? .snapshot : nil
            },
            make: { worker.makeFetch(request, arrival, plan, leader: self) })
        guard case .joined(let operation, let token, let late) = result else {
            announcePart(result, of: plan)
            return enqueued(result, .led)
        }
        joined(operation, token, late: late, bound)
        if resource == nil { mayBeCrowd(at: operation) }
    }

    private func enqueued<Found>(_ result: Enqueued<FetchOperation, Found>, _ role: Role) {
        switch result {
        case .found:
            // `Superseded`, not a response.
            lookAgainAtOnce()
        case .started(let operation, let token):
            lead(
                operation, at: role == .alone ? .direct(operation) : .waiter(operation, token, listener: .none),
                as: role
            )
        case .joined:
            break
        case .refused(let reason, _):
            worker.metrics.add(.coalescing(.refused))
            meets(.refusal(reason))
        }
    }

    private func waiter(_ bound: LoopBound<FetchWaiter>) -> Waiter<FetchedResponse> {
        Waiter(
            on: worker.loop.handle, accepts: { [request, time = arrival.time] in $0.mayServe(request, arrivedAt: time) }
        ) { bound.value.received($0) }
    }

    // MARK: Joining without asking the table

    /// Joins, as a member of a crowd, the fetch that the previous request joined. No response or note is stored under
    /// its key, so its plan would be the same; and an operation that takes a waiter is still in flight: before another
    /// response is stored or fetched under the key, the operation ends or is closed.
    /// - Returns: false, without a change, if the table must be asked.
    func joinCrowd() -> Bool {
        guard sharingHistory.looksLikeAnyOther, !request.isBound, let crowd = worker.crowd,
            crowd.latestHead === request || (crowd.isFor(request) && isOrdinary)
        else { return false }
        if let seat = crowd.join(self) {
            join(crowd, at: seat)
            return true
        }
        // The response may be there: then each request joins late, with a seat of its own.
        let bound = LoopBound<FetchWaiter>(self, on: worker.loop)
        switch crowd.operation.join(waiter(bound)) {
        case .joined(let token, let late):
            noteMiss()
            joined(crowd.operation, token, late: late, bound)
            return true
        case .refused(.full):
            return false
        case .refused:
            // The operation is closed or over: the crowd waits on, and no request joins it.
            worker.crowd = nil
            return false
        }
    }

    /// Offers a crowd at `operation`, which the request joined while no response to it is stored: more requests may be
    /// coming, and need not ask the table.
    private func mayBeCrowd(at operation: FetchOperation) {
        guard isOrdinary, operation.key.kind == .get(isAuthorized: false), operation.key.variant == nil else { return }
        // Of two crowds at the same time only one is kept: replacing each by the other again and again would cost more
        // than it saves.
        if let crowd = worker.crowd, crowd.operation === operation || crowd.isGrowing { return }
        worker.offer(Crowd(at: operation, route: request.route, worker: worker))
    }

    private var isOrdinary: Bool {
        request.method == .get && !request.hasContent && !request.hasPassCookie && request.directives.flags.isEmpty
            && request.fields.present.isDisjoint(with: .changingPlan)
    }

    /// Joins the fetch of the whole, if that is already arriving, instead of fetching a part. Not called if the whole
    /// is known to be too large to keep.
    private func joinWhole(_ plan: FetchPlan) -> Bool {
        let key = plan.key.asking(.get(isAuthorized: request.hasAuthorization))
        guard let operation = worker.fetches(of: request).operation(for: key, as: FetchOperation.self) else {
            return false
        }
        return join(operation)
    }

    /// Joins the fetch of a larger part that is arriving and has all that `plan` asks for, if the range begins within a
    /// window's length of that part's beginning. Further behind, a fetch of its own brings the range sooner. Also, if
    /// the larger part is too large to be kept, a client that needs more of it than the window would get it at the pace
    /// of its slowest reader.
    private func joinLargerPart(_ plan: FetchPlan) -> Bool {
        guard let range = plan.range,
            let operation = worker.fetches(of: request).operation(for: anyPart(plan), as: FetchOperation.self),
            operation.plan.range?.begins(with: range, inFirst: worker.storage.streamingWindow) == true
        else { return false }
        return join(operation)
    }

    /// - Returns: false if the operation takes no more waiters.
    private func join(_ operation: FetchOperation) -> Bool {
        let bound = LoopBound<FetchWaiter>(self, on: worker.loop)
        guard case .joined(let token, let late) = operation.join(waiter(bound)) else { return false }
        joined(operation, token, late: late, bound)
        return true
    }

    /// Lets `joinLargerPart` find the fetch of a part that this request leads, unless it finds another one.
    private func announcePart(_ result: Enqueued<FetchOperation, some Any>, of plan: FetchPlan) {
        if plan.range != nil, case .started(let operation, _) = result {
            worker.fetches(of: request).addAlias(operation, for: anyPart(plan))
        }
    }

    private func anyPart(_ plan: FetchPlan) -> FetchKey {
        plan.key.asking(.anyPart(isAuthorized: request.hasAuthorization))
    }

    private func joined(_ operation: FetchOperation, _ token: WaiterToken, late: Bool, _ bound: LoopBound<FetchWaiter>)
    {
        operation.noteJoin(of: request)
        join(operation, at: .waiter(operation, token, listener: operation.interims.hear(bound)), late: late)
    }
}
