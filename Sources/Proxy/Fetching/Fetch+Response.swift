import Bytes
import HTTPSemantics
import Libevent
import Storage
import Upstream

/// Builds the response from the head that the origin sent: the decision about it, and the object that the waiters get.
extension Fetch {
    /// Decides on a response that the waiters will get, and records the consequences. Only this method settles, from a
    /// head, the key that the response belongs under, the query rules learnt for its path, and how its body is kept.
    /// Called once for each exchange whose response is used.
    /// - Parameters:
    ///   - facts: the facts of the response as it would be stored.
    ///   - part: the part of the representation that the content is, if a range was requested and a part came.
    func settle(
        _ head: borrowing ReceivedHead, _ facts: ResponseFacts, _ policy: CachingPolicy, part: ReceivedPart? = nil
    ) -> HeadDecision {
        let fields = head.fields
        let announced =
            method == .head ? head.head.contentLength.map { Int(clamping: $0) } : head.head.framing.announcedLength
        var decision = HeadDecision.on(
            facts, fields, length: announced, part: part, for: request, plan, policy, hasPassCookie: hasPassCookieByNow,
            objectLimit: worker.storage.objectLimit,
            isOutdated: isOutdated(CacheGroups.of(fields, requestTime: sentAt)),
            wasInvalidated: worker.shared.store.wasInvalidated(request.key, since: placement.generation))
        if let reason = chooseStoreKey(by: fields, willBeStored: decision.willBeStored) {
            decision.forbidStoring(because: reason)
        }
        arriving = ArrivingBody(decision.keeping, length: part?.range.count ?? announced, part: part)
        return decision
    }

    /// - Returns: the reason if the response is not stored after all.
    private func chooseStoreKey(by fields: FieldView, willBeStored: Bool) -> NotStoredReason? {
        // True of nearly all responses.
        guard fields.contains(.noVarySearch) || request.isUnderVariation else { return nil }
        // A copy in a local variable avoids the run-time check of exclusive access.
        var placement = placement
        let reason = placement.chooseStoreKey(
            by: fields, for: request, willBeStored: willBeStored, in: worker.shared.store, worker.shared.variations,
            worker.keys)
        self.placement = placement
        return reason
    }

    /// Whether the whole representation was fetched for a range request, so that all requests could have their parts of
    /// it, or the stored response be used, but is too large to be stored, or is for the leader only.
    func isWholeInVain(_ decision: HeadDecision) -> Bool {
        !plan.isPass && plan.range == nil && !decision.willBeStored
            && request.fields.present.contains(.range) && request.route.maxRanges > 0
            && (decision.isTooLarge || !decision.sharing.isForSeveral)
    }

    /// The whole response is unusable for the waiters, and their ranges may be small: the waiters fetch these
    /// themselves, and for a while so do all other requests.
    /// - Returns: false if the response is for the leader alone, which would only send the same request again.
    func releaseAll(because sharing: Sharing) -> Bool {
        let reason: NotSharedReason = if case .nobody(let reason) = sharing { reason } else { .range }
        // A pass cookie of the leader says nothing of the responses to other requests.
        if reason == .prohibited(.passCookie) { return false }
        guard plan.isShared || (learnsForOthers && !leaderWasReleased && (plan.stored == nil || reason != .noCache))
        else { return false }
        remember(reason)
        end(.released)
        return true
    }

    func makeResponse(
        _ head: borrowing ReceivedHead, _ facts: ResponseFacts, _ policy: CachingPolicy, _ decision: HeadDecision
    ) -> StoredResponse {
        let variant = facts.contains(.varies) ? request.variant(under: request.varyRule(head.fields)) : nil
        let groups = CacheGroups.of(head.fields, requestTime: sentAt)
        let willBeStored = decision.willBeStored
        let isForLeader = plan.isPass && !willBeStored
        // A small response that is complete is packed: no body follows. One with a separate head for the leader is not
        // packed, since the two heads share a body.
        if let content = head.content, content.count <= StoredResponse.packedBody, !facts.contains(.excludesFields) {
            let (lines, key) = (worker.scratch, storeKey.bytes)
            lines.removeAll()
            StoredFields.append(
                head.fields, facts: facts, policy: policy, dropping: Self.writtenAnew, isForLeader: isForLeader,
                to: lines)
            return StoredResponse(
                packing: lines.span, body: content, under: key.span.extracting(first: willBeStored ? key.count : 0),
                facts: facts, variant: variant, groups: groups)
        }
        return StoredResponse(
            head: keptHead(head, facts, policy, isForLeader: isForLeader), facts: facts,
            body: makeBody(expecting: decision.length, keeping: decision.keeping),
            variant: variant, groups: groups)
    }

    func keptHead(
        _ head: borrowing ReceivedHead, _ facts: ResponseFacts, _ policy: CachingPolicy, isForLeader: Bool
    ) -> HeadBlock {
        StoredFields.head(
            keeping: head.fields, facts: facts, policy: policy, dropping: Self.writtenAnew, isForLeader: isForLeader)
    }

    /// Dropped from the stored head, since the length is written with each response.
    private static let writtenAnew = FieldSet(.contentLength)

    /// Makes the body for the content that arrives from now on.
    /// - Parameters:
    ///   - length: the length in bytes; `nil` if it is not announced.
    ///   - keeping: how much of the body is kept.
    func makeBody(expecting length: Int?, keeping: ArrivingBody.Keeping) -> GrowingBody {
        let (budget, window) = (worker.shared.budget, keeping.isWhole ? nil : worker.shared.streamingWindow)
        guard let operation else { return GrowingBody(budget: budget, expectedLength: length, window: window) }
        // A closure over one strong reference needs no object of its own.
        return GrowingBody(budget: budget, expectedLength: length, window: window) {
            operation.work.handle.post { operation.work.value.bodyHasRoom() }
        }
    }

    /// Makes the object that the waiters get from the origin's response.
    /// - Parameter leaderResponse: `nil` where the leader gets the same response as the others.
    func makeFetchedResponse(
        _ response: StoredResponse, forLeader leaderResponse: StoredResponse? = nil, from head: borrowing ReceivedHead,
        _ decision: HeadDecision
    ) -> FetchedResponse {
        FetchedResponse(
            response, leaderResponse: leaderResponse, source: .origin, sharing: decision.sharing,
            originStatus: head.head.status,
            length: decision.length, willBeStored: isSureToBeStored(decision), notStored: decision.notStored,
            hasAge: head.fields.contains(.age),
            circumstances(of: response))
    }

    /// Whether clients may be told that the response is stored: no known fact speaks against it. For an announced
    /// length there must be memory; without one, the last such response must not have been too large. A body that
    /// breaks off, or an invalidation while it arrives, cannot be foreseen.
    private func isSureToBeStored(_ decision: HeadDecision) -> Bool {
        guard decision.willBeStored else { return false }
        guard let length = arriving.length else {
            // The plan of a pass has no resource.
            let resource = plan.resource ?? worker.shared.store.resource(request.key)
            return resource?.outgrows(at: worker.moment) != true
        }
        return length <= GrowingBody.smallestWindow || worker.shared.store.mayKeepWhole(length)
    }

    @inline(__always)
    func circumstances(of response: StoredResponse) -> FetchedResponse.Circumstances {
        FetchedResponse.Circumstances(
            leader: request, otherKey: placement.otherKey, search: placement.search,
            server: exchange?.addressText ?? .empty, requestTime: sentAt,
            invalidations: response.groups == nil ? nil : worker.shared.groups)
    }
}
