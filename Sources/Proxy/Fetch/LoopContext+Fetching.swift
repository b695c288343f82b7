import Coalescing
import HTTPSemantics
import Libevent
import Routing
import Storage
import Upstream

/// Making fetches.
extension LoopContext {
    func fetches(of request: ClientRequest) -> OperationQueueManager<FetchKey> { request.route.origin.fetches }

    /// - Parameters:
    ///   - leader: gets the events that only the request that started the fetch needs.
    ///   - content: the request's content as far as it was read ahead; `nil` if it was not.
    func makeFetch(
        _ request: ClientRequest, _ arrival: Arrival, _ plan: FetchPlan, leader: (any FetchLeader)?,
        content: OutgoingContent? = nil
    ) -> FetchOperation {
        FetchOperation(
            number: shared.nextOperation(), leader: request, plan: plan, made: now,
            work: LoopOwned(
                Fetch(request, arrival, plan: plan, context: self, leader: leader, content: content), on: loop),
            mostWaiters: settings.coalescing.maxWaiters)
    }

    /// Revalidates a response that is served stale, in the background (RFC 5861 §3): the fetch neither delays the
    /// request nor ends with it. Not while memory is used up, since other requests wait for it.
    /// - Parameters:
    ///   - resource: the resource found at look-up. If the store has another one by now, the response was
    ///   refreshed or removed, and there is no fetch.
    ///   - arrival: the arrival of the request `served`.
    func refresh(_ stored: StoredResponse, _ resource: CachedResource?, for served: ClientRequest, _ arrival: Arrival) {
        guard !isOverloaded else { return }
        // A response stored for all clients was fetched without `Authorization`; the response to a refresh with it
        // could not be shared (RFC 9111 §3.5).
        let request =
            served.hasAuthorization && !stored.facts.contains(.allowsAuthorized)
            ? served.anonymous : served
        let plan = Lookup.refreshPlan(of: stored, in: resource, for: request)
        let store = shared.store
        _ = fetches(of: request).enqueue(
            plan.key, waiter: nil as Waiter<FetchedResponse>?, priority: .background,
            unless: { () -> Void? in store.resource(request.key) == resource ? nil : () },
            make: { makeFetch(request, arrival, plan, leader: nil) })
    }
}
