import Bytes
import HTTPSemantics
import Libevent
import Storage
import Upstream

/// A response that the origin sent, from its head: what is decided about it, and what those who wait are given.
extension Fetch {
    /// Decides on a response that those who wait will get, and writes down what follows: nowhere else does a head
    /// settle the key that the response belongs under, what is learnt of its path's queries, and what its body is to
    /// be. Once for each exchange whose response is used.
    /// - Parameters:
    ///   - facts: of the response as it would be stored.
    ///   - part: what it is of the representation, where a part was asked for and came.
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

    /// - Returns: why it is not stored after all.
    private func chooseStoreKey(by fields: FieldView, willBeStored: Bool) -> NotStoredReason? {
        // Nearly always.
        guard fields.contains(.noVarySearch) || request.isUnderVariation else { return nil }
        // In a local variable nothing watches its exclusive use at run time.
        var placement = placement
        let reason = placement.chooseStoreKey(
            by: fields, for: request, willBeStored: willBeStored, in: worker.shared.store, worker.shared.variations,
            worker.keys)
        self.placement = placement
        return reason
    }

    /// Whether the whole came for a request for a range, so that all could have their parts of it, or what is stored be
    /// used; but it is too large to be stored, or for nobody else.
    func isWholeInVain(_ decision: HeadDecision) -> Bool {
        !plan.isPass && plan.range == nil && !decision.willBeStored
            && request.fields.present.contains(.range) && request.route.maxRanges > 0
            && (decision.isTooLarge || !decision.sharing.isForSeveral)
    }

    /// The whole is in vain, and what is wanted of it may be small: those who wait ask for that themselves, and for a
    /// while so does everybody else.
    /// - Returns: false where the leader, for whom alone it is, would only ask for the same again.
    func releaseAll(because sharing: Sharing) -> Bool {
        let reason: NotSharedReason = if case .nobody(let reason) = sharing { reason } else { .range }
        // That its client went past the cache says nothing of what others get.
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
        // A small one that is all here is packed: there is no body to follow. With a head of its own for the leader it
        // is not: the two share a body.
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

    /// The length is written with each response.
    private static let writtenAnew = FieldSet(.contentLength)

    /// For the content that arrives from now on.
    /// - Parameters:
    ///   - length: of it in bytes; `nil` where it is not announced.
    ///   - keeping: how much of it is kept.
    func makeBody(expecting length: Int?, keeping: ArrivingBody.Keeping) -> GrowingBody {
        let (budget, window) = (worker.shared.budget, keeping.isWhole ? nil : worker.shared.streamingWindow)
        guard let operation else { return GrowingBody(budget: budget, expectedLength: length, window: window) }
        // A closure over one strong reference needs no object of its own.
        return GrowingBody(budget: budget, expectedLength: length, window: window) {
            operation.work.handle.post { operation.work.value.bodyHasRoom() }
        }
    }

    /// What the origin sent, for those who wait.
    /// - Parameter leaderResponse: `nil` where the leader gets what all get.
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

    /// Whether clients may be told that the response is stored: nothing that is known speaks against it. Where its length
    /// is announced there must be memory for that; where it is not, the last such response must not have been too large.
    /// What breaks off, or is invalidated while it arrives, nobody can foresee.
    private func isSureToBeStored(_ decision: HeadDecision) -> Bool {
        guard decision.willBeStored else { return false }
        guard let length = arriving.length else {
            // A pass looks at nothing that is stored.
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
