import Bytes
import HTTPSemantics
import Routing
import Storage

/// Puts the response of a fetch into the store, or the part of it that arrived.
///
/// A temporary value of one fetch, on its loop.
struct ResponseStoring {
    private let fetch: Fetch

    /// `nil` if the response is not stored. That may differ from the head's decision: its size is known by now, or a
    /// reload came, by whose settings the leader's request goes past the cache.
    @inline(__always)
    init?(of fetch: Fetch) {
        guard fetch.arriving.willBeStored, !fetch.request.hasPassCookie(by: fetch.context.loopSettings) else {
            return nil
        }
        self.fetch = fetch
    }

    private var request: ClientRequest { fetch.request }
    private var responses: ResponseStore { fetch.context.shared.store }
    private var recorder: Recorder { fetch.context.recorder }

    /// Stores the response, whose body has ended.
    /// - Parameter waiterCount: how many clients wait for the fetch, or read its response.
    func store(_ fetched: FetchedResponse, waiterCount: Int) {
        let response = fetched.response
        if let part = fetched.decision.part { return store(part: part.range, of: part.length, from: fetched) }
        let outcome = responses.store(
            response, under: fetch.storeKey, requestTime: fetch.sentAt, popularity: max(0, waiterCount - 1),
            unless: { fetch.wasInvalidated })
        recorder.count(outcome)
        guard outcome == .stored else { return }
        dropFormer()
        if fetch.method == .get, fetch.plan.stored != nil, fetch.placement.otherKey == nil {
            Revalidation(
                plan: fetch.plan, requestTime: fetch.sentAt, generation: fetch.generation, hasPassCookie: false,
                operation: fetch.operation, shared: fetch.context.shared, recorder: recorder
            ).dropVariants(before: response)
        }
    }

    /// Keeps the bytes received of a body that broke off, or whose last client left. Under a strong entity tag they may
    /// be completed later (RFC 9111 §3.3).
    func storeReceivedPart(of fetched: FetchedResponse) {
        let response = fetched.response
        guard fetch.method == .get, request.route.policy.storesPartialContent, response.facts.status == .ok,
            response.facts.contains(.hasStrongETag)
        else { return }
        let (body, decision) = (response.bodyToFollow(), fetched.decision)
        let arrived = body.length
        guard body.keepsStart, arrived > 0, arrived < decision.contentLength ?? .max else { return }
        let first = decision.part?.range.lowerBound ?? 0
        store(
            part: first..<first + arrived, of: decision.part == nil ? decision.contentLength : decision.part?.length,
            from: fetched)
    }

    /// Stores the part that was fetched, or as much of it as arrived.
    private func store(part range: Range<Int>, of length: Int?, from fetched: FetchedResponse) {
        let (arrived, budget) = (fetched.response.bodyToFollow(), fetch.context.shared.budget)
        let body =
            arrived.completeLength == range.count
            ? arrived : GrowingBody(joining: [(arrived, 0..<range.count)], budget: budget)
        let keeper = fetched.partKeeper ?? fetched.response
        let stored = StoredResponse(
            head: keeper.head, facts: keeper.facts, body: GrowingBody(joining: [], budget: budget),
            parts: StoredParts([StoredParts.Run(range, body)], length: length), variant: keeper.variant,
            tags: keeper.tags)
        recorder.count(
            responses.storeParts(
                stored, bringing: range, under: fetch.storeKey, requestTime: fetch.sentAt,
                unless: { fetch.wasInvalidated }))
    }

    /// A response stored under the URL's own key is older than the one now stored for this URL and others, but look-ups
    /// would find it first.
    private func dropFormer() {
        guard fetch.placement.otherKey != nil || request.isUnderVariation, fetch.storeKey != request.sentKey,
            let former = responses.resource(request.sentKey), former.count > 0
        else { return }
        fetch.context.shared.drop(request.sentKey, except: fetch.operation)
    }
}
