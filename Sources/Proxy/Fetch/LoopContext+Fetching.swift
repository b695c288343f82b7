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
        let operation = FetchOperation(
            of: Fetch(plan, arrival, context: self, leader: leader, awaitsContinue: awaitsContinue), on: loop,
            number: shared.nextOperation(), mostWaiters: settings.coalescing.maxWaiters)
        if let tier { TierSession.lookUp(before: operation, tier, shared.tier) }
        return operation
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
    func pool(for request: ClientRequest) -> UpstreamPool { pools.pool(of: request.route.origin) }

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
