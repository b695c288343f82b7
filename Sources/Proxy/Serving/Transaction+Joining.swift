import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Telemetry

/// Joining a fetch without asking the table for it.
extension Transaction {
    /// Fields with which a request's plan may differ from another's for the same URL.
    private static let changingPlan = HitPath.notOfPlainHits.union(FieldSet(.range))

    /// One of a crowd joins what the one before it joined. Nothing is stored or known under its key, so its plan would
    /// be the same; and an operation that takes a waiter is still in flight: before anything else is stored or fetched
    /// under the key, it is ended or closed.
    /// - Returns: false, with nothing done, when the table must be asked.
    func joinCrowd() -> Bool {
        guard releases == 0, let crowd = worker.crowd,
            crowd.latestHead === request.sharedHead || (crowd.isFor(request) && isOrdinary)
        else { return false }
        if let seat = crowd.join(self) {
            provenance.noteAsking(for: request.route.missReason)
            noteJoined(late: false)
            // Without `boundWait`: the crowd keeps the time of all its members.
            wait(at: seat, of: crowd.operation)
            for interim in crowd.interims { received(interim: interim) }
            return true
        }
        // Perhaps its response is there: then each joins late, with a seat of its own.
        let bound = LoopBound<FetchWaiter>(self, on: worker.loop)
        switch crowd.operation.join(waiter(bound)) {
        case .joined(let token, let late):
            provenance.noteAsking(for: request.route.missReason)
            joined(crowd.operation, token, late: late, bound)
            return true
        case .refused(.full):
            return false
        case .refused:
            // Closed or over: the crowd waits on, and nobody joins it.
            worker.crowd = nil
            return false
        }
    }

    /// `operation` was joined, and nothing is stored of what it fetches: a crowd may be coming, which need not ask the
    /// table.
    func mayBeCrowd(at operation: FetchOperation) {
        guard isOrdinary, operation.key.kind == .get(isAuthorized: false), operation.key.variant == nil else { return }
        // Of two crowds at the same time only one is kept: replacing each by the other again and again would cost more
        // than it saves.
        if let crowd = worker.crowd, crowd.operation === operation || crowd.isGrowing { return }
        worker.offer(Crowd(at: operation, route: request.route, worker: worker))
    }

    private var isOrdinary: Bool {
        request.method == .get && !request.hasContent && !request.hasPassCookie && request.directives.flags.isEmpty
            && request.fields.present.isDisjoint(with: Self.changingPlan)
    }

    /// If the whole is already arriving, joins that instead of asking for a part.
    func joinWhole(_ plan: FetchPlan, _ waiter: Waiter<FetchedResponse>, _ bound: LoopBound<FetchWaiter>) -> Bool {
        let key = plan.key.asking(.get(isAuthorized: request.hasAuthorization))
        guard plan.isShared, let operation = worker.fetches(of: request).operation(for: key, as: FetchOperation.self),
            case .joined(let token, let late) = operation.join(waiter)
        else { return false }
        joined(operation, token, late: late, bound)
        return true
    }

    /// If a larger part is arriving that has all that `plan` asks for within a window's length of its beginning, joins
    /// that. Further behind, a fetch of its own is sooner there; and where the larger part is too large to be kept, who
    /// needs more of it than the window would go at the pace of its slowest reader.
    func joinLargerPart(_ plan: FetchPlan, _ waiter: Waiter<FetchedResponse>, _ bound: LoopBound<FetchWaiter>) -> Bool {
        guard let range = plan.range,
            let operation = worker.fetches(of: request).operation(for: anyPart(plan), as: FetchOperation.self),
            operation.plan.range?.begins(with: range, inFirst: worker.storage.streamingWindow) == true,
            case .joined(let token, let late) = operation.join(waiter)
        else { return false }
        joined(operation, token, late: late, bound)
        return true
    }

    /// From now on the fetch of a part that this request leads is found by `joinLargerPart`, unless another one is.
    func announcePart(_ result: Enqueued<FetchOperation, some Any>, of plan: FetchPlan) {
        if plan.range != nil, case .started(let operation, _) = result {
            worker.fetches(of: request).addAlias(operation, for: anyPart(plan))
        }
    }

    private func anyPart(_ plan: FetchPlan) -> FetchKey {
        plan.key.asking(.part(nil, isAuthorized: request.hasAuthorization))
    }

    func joined(_ operation: FetchOperation, _ token: WaiterToken, late: Bool, _ bound: LoopBound<FetchWaiter>) {
        noteJoined(late: late)
        wait(at: .waiter(operation, token, listener: operation.interims.hear(bound)), of: operation)
        boundWait(for: operation)
    }

    private func noteJoined(late: Bool) {
        provenance.noteJoined(late: late)
        worker.metrics.add(.coalescing(late ? .joinedLate : .joined))
    }
}
