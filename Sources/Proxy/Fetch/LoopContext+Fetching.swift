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
    ///   - awaitsContinue: whether the leader's client waits for 100 from the origin.
    func makeFetch(
        _ plan: consuming FetchPlan, _ arrival: borrowing Arrival, leader: borrowing (any FetchLeader)?,
        awaitsContinue: Bool = false
    ) -> FetchOperation {
        let (request, key, isRefresh) = (plan.request, plan.key, plan.isRefresh)
        let fetch = Fetch(plan, arrival, context: self, leader: leader, awaitsContinue: awaitsContinue)
        // A fetch that has not begun has no response to finish, so it is cancelled when its last client leaves, unless
        // it is a refresh. `Fetch` sets the policy from then on.
        return FetchOperation(
            number: shared.nextOperation(), leader: request, key: key, made: now, work: LoopOwned(fetch, on: loop),
            lastLeavePolicy: isRefresh ? .goOn : .cancel, mostWaiters: settings.coalescing.maxWaiters)
    }

    // Not inlined, as the accessors of `LoopContext`.

    /// Writes the request that the origin gets by `plan`.
    @inline(never)
    func write(_ plan: FetchPlan, from arrival: Arrival, with writer: inout FetchRequestWriter) -> UpstreamRequest {
        let written = writer.write(plan, from: arrival, by: loopSettings, in: scratch)
        if writer.removesFields {
            notices.removed(FetchRequestWriter.removedFields(of: plan, from: arrival, by: loopSettings), from: arrival)
        }
        return written
    }

    @inline(never)
    func pool(for plan: FetchPlan) -> UpstreamPool { pools.pool(of: plan.request.route.origin) }

    /// The number of invalidations so far (`SearchVariations`).
    var invalidations: UInt64 { @inline(never) get { variations.invalidations } }

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
            make: { makeFetch(plan, arrival, leader: nil) })
    }
}
