import Coalescing
import Libevent
import Storage
import Telemetry

/// From a plan to the fetch that is waited for: led, joined, or its own.
extension Transaction {
    /// Looks up again when something was learnt between the look-up and the step under the table's lock: a resource is
    /// a snapshot, so another identity means that somebody stored, marked or forgot since. This makes look-up, join and
    /// lead one step.
    private enum Changed: Sendable { case lookAgain }

    /// - Parameter resource: what the plan was made by.
    func fetch(_ plan: FetchPlan, for request: ClientRequest, seen resource: CachedResource?) {
        fallback = plan.fallback
        provenance.noteAsking(for: plan.reason)
        let fetches = worker.fetches(of: request)
        // Joining costs a cursor; only a new fetch needs memory.
        if worker.isOverloaded, fetches.operation(for: plan.key, as: FetchOperation.self) == nil {
            worker.notices.overloaded(worker.shared)
            return boundExceeded("memory-full")
        }
        guard plan.isShared else {
            // The fetch delivers directly (`FetchLeader`).
            let nobody: Waiter<FetchedResponse>? = nil
            let operation = worker.makeFetch(request, plan, leader: self, content: contentAhead.take())
            return enqueued(fetches.enqueueAlone(operation, waiter: nobody), .alone)
        }
        let bound = LoopBound<FetchWaiter>(self, on: worker.loop)
        let waiter = waiter(bound)
        if plan.range != nil, joinWhole(plan, waiter, bound) || joinLargerPart(plan, waiter, bound) { return }
        let store = worker.shared.store
        let result = fetches.enqueue(
            plan.key, waiter: waiter, priority: .normal,
            unless: { () -> Changed? in
                store.resource(request.key) != resource || worker.hasLearnt(about: request) ? .lookAgain : nil
            },
            make: { worker.makeFetch(request, plan, leader: self) })
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
            lookAgainAtOnce()
        case .started(let operation, let token):
            provenance.role = role
            worker.metrics.add(.coalescing(role == .alone ? .alone : .led))
            ledFetch = operation.work.value
            wait(at: role == .alone ? .alone(operation) : .waiter(operation, token, listener: .none), of: operation)
            boundWait(for: operation)
        case .joined:
            break
        case .refused(let reason, let operation):
            worker.metrics.add(.coalescing(.refused))
            boundExceeded(reason.name, by: operation)
        }
    }

    func waiter(_ bound: LoopBound<FetchWaiter>) -> Waiter<FetchedResponse> {
        Waiter(on: worker.loop.handle, accepts: { [request] in $0.mayServe(request) }) { bound.value.received($0) }
    }
}
