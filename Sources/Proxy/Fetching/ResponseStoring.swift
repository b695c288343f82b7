import Bytes
import HTTPSemantics
import Storage

/// Puts the response of a fetch into the store, or the part of it that arrived.
///
/// A temporary value of one fetch, on its loop.
struct ResponseStoring {
    /// The request that led.
    let request: ClientRequest
    let plan: FetchPlan
    let placement: Placement
    /// When the origin was asked.
    let requestTime: Moment
    /// The response whose fields a part is stored with, if not its own.
    let partKeeper: StoredResponse?
    let operation: FetchOperation?
    let responses: ResponseStore
    let variations: SearchVariations
    let budget: MemoryBudget
    let recorder: Recorder

    /// `nil` if the response is not stored. That may differ from the head's decision: its size is known by now, or a
    /// reload came, by whose settings the leader's request goes past the cache.
    init?(of fetch: borrowing Fetch) {
        guard fetch.arriving.willBeStored, !fetch.request.hasPassCookie(by: fetch.worker.loopSettings) else {
            return nil
        }
        request = fetch.request
        plan = fetch.plan
        placement = fetch.placement
        requestTime = fetch.sentAt
        partKeeper = fetch.partKeeper
        operation = fetch.operation
        (responses, budget) = (fetch.worker.shared.store, fetch.worker.shared.budget)
        variations = fetch.worker.variations
        recorder = fetch.worker.recorder
    }

    private var method: Method { plan.method(for: request) }
    private var storeKey: CacheKey { placement.storeKey(of: request) }
    private var wasInvalidated: Bool { placement.wasInvalidated(operation, for: request, in: variations) }

    /// Stores the response, whose body has ended.
    /// - Parameter waiterCount: how many clients wait for the fetch, or read its response.
    func store(_ fetched: FetchedResponse, waiterCount: Int) {
        let response = fetched.response
        if let part = fetched.decision.part { return store(part: part.range, of: part.length, from: response) }
        let outcome = responses.store(
            response, under: storeKey, requestTime: requestTime, popularity: max(0, waiterCount - 1),
            unless: { wasInvalidated })
        recorder.count(outcome)
        guard outcome == .stored else { return }
        dropFormer()
        if method == .get, plan.stored != nil, placement.otherKey == nil {
            Revalidation(
                request: request, plan: plan, requestTime: requestTime, hasPassCookie: false, store: responses, recorder: recorder
            ).dropVariants(before: response)
        }
    }

    /// Keeps the bytes received of a body that broke off, or whose last client left. Under a strong entity tag they may
    /// be completed later (RFC 9111 §3.3).
    func storeWhatArrived(of fetched: FetchedResponse) {
        let response = fetched.response
        guard method == .get, request.route.policy.storesPartialContent, response.facts.status == .ok,
            response.facts.contains(.hasStrongETag)
        else { return }
        let (body, decision) = (response.bodyToFollow(), fetched.decision)
        let arrived = body.length
        guard body.keepsStart, arrived > 0, arrived < decision.contentLength ?? .max else { return }
        let first = decision.part?.range.lowerBound ?? 0
        store(
            part: first..<first + arrived, of: decision.part == nil ? decision.contentLength : decision.part?.length,
            from: response)
    }

    /// Stores the part that was fetched, or as much of it as arrived.
    private func store(part range: Range<Int>, of length: Int?, from response: StoredResponse) {
        let arrived = response.bodyToFollow()
        let body =
            arrived.completeLength == range.count
            ? arrived : GrowingBody(joining: [(arrived, 0..<range.count)], budget: budget)
        let keeper = partKeeper ?? response
        let stored = StoredResponse(
            head: keeper.head, facts: keeper.facts, body: GrowingBody(joining: [], budget: budget),
            parts: StoredParts([StoredParts.Run(range, body)], length: length), variant: keeper.variant,
            groups: keeper.groups)
        recorder.count(
            responses.storeParts(
                stored, bringing: range, under: storeKey, requestTime: requestTime, unless: { wasInvalidated }))
    }

    /// A response stored under the URL's own key is older than the one now stored for this URL and others, but look-ups
    /// would find it first.
    private func dropFormer() {
        guard placement.otherKey != nil || request.isUnderVariation, storeKey != request.sentKey,
            let former = responses.resource(request.sentKey), former.count > 0
        else { return }
        responses.remove(request.sentKey, keepsNotes: true)
    }
}
