import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Upstream

/// What requests and their fetches ask of their worker.
extension Worker {
    func fetches(of request: ClientRequest) -> OperationQueueManager<FetchKey> { request.route.origin.fetches }

    @inline(never) // As those in `Worker`: inlined, `pools` would be retained.
    func pool(for route: Route) -> UpstreamPool { pools.pool(of: route.origin) }

    /// - Parameters:
    ///   - leader: is told what concerns nobody else.
    ///   - content: what is here of the request's content, if it was read ahead.
    func makeFetch(
        _ request: ClientRequest, _ plan: FetchPlan, leader: (any FetchLeader)?, content: OutgoingContent? = nil
    ) -> FetchOperation {
        let operation = FetchOperation(
            number: shared.nextOperation(), leader: request.sharedHead, plan: plan, made: now,
            work: LoopOwned(Fetch(request, plan: plan, worker: self, leader: leader, content: content), on: loop))
        guard plan.isShared else { return operation }
        operation.waiterLimit = settings.coalescing.maxWaiters
        // Before it has begun there is nothing to finish (`Fetch.begin`).
        operation.lastLeavePolicy = plan.isRefresh ? .goOn : .cancel
        return operation
    }

    /// Fetches anew what is served stale, for nobody in particular (RFC 5861 §3): it neither delays nor dies with the
    /// request. Not while memory is used up, which others wait for.
    /// - Parameter resource: what was seen at look-up. Where it is another by now, somebody refreshed or forgot it.
    func refresh(_ stored: StoredResponse, _ resource: CachedResource?, for served: ClientRequest) {
        guard !isOverloaded else { return }
        // What is stored for all was fetched without `Authorization`; what a refresh with it brings could not be shared
        // (RFC 9111 §3.5).
        let request =
            served.hasAuthorization && !stored.facts.contains(.allowsAuthorized)
            ? served.anonymous : served
        let plan = Lookup.refreshPlan(of: stored, in: resource, for: request)
        let store = shared.store
        _ = fetches(of: request).enqueue(
            plan.key, waiter: nil as Waiter<FetchedResponse>?, priority: .background,
            unless: { () -> Void? in store.resource(request.key) == resource ? nil : () },
            make: { makeFetch(request, plan, leader: nil) })
    }

    /// Lets `crowd` be joined from now on; until the end of this iteration if nobody does.
    func offer(_ crowd: Crowd) {
        self.crowd = crowd
        loop.atIterationEnd { [self] in
            if self.crowd === crowd, !crowd.isGathering { self.crowd = nil }
        }
    }
}
