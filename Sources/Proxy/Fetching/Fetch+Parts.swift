import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Upstream

/// A fetch of a part: what its response may be combined with, and what is kept of a body that broke off (RFC 9111 §3.3,
/// §3.4).
extension Fetch {
    /// Takes the head of a response to a request for a range.
    /// - Returns: false where it is a response like any other.
    func receivedPart(_ head: borrowing ReceivedHead, of range: ByteRangeSpec, at now: Moment) -> Bool {
        let status = head.head.status
        let policy = request.route.policy
        guard
            let part = ReceivedPart(
                head.fields, status: status, contentLength: head.head.framing.announcedLength, asked: range)
        else { return partsDoNotFit(head) }
        let base = plan.parts.flatMap { belongs(part, head.fields, to: $0) ? $0 : nil }
        let update = ResponseFacts(
            status: .ok, fields: head.fields, requested: sentAt, received: now, policy: policy,
            hasCookies: request.hasCookies)
        // §3.4: the new fields take the place of the stored ones.
        let kept =
            base.map { Freshening.head($0.head, updatedWith: head.fields, facts: update, policy: policy) }
            ?? keptPartHead(head, update, isForLeader: false)
        let facts =
            base.map { stored in
                ResponseFacts(
                    freshened: stored.facts, head: kept.view, by: head.fields, requested: sentAt, received: now,
                    policy: policy)
            } ?? update
        let decision = settle(head, facts, policy, part: part)
        let body = makeBody(expecting: part.range.count)
        let run = StoredParts.Run(part.range, body)
        let parts = base?.parts?.adding(run, length: part.length, budget: worker.shared.budget)
        let fields = request.fields
        let rule = request.varyRule(kept.view, facts)
        let response = StoredResponse(
            head: kept, facts: facts, body: body, parts: parts ?? StoredParts([run], length: part.length),
            varyRule: rule, variantKey: VariantKey(fields.view, under: rule),
            groups: CacheGroups.of(kept.view, requested: sentAt))
        guard response.hasAll(that: request) else { return partsDoNotFit(head) }
        let mayBeKept =
            facts.storability(method: .get, request: .none, hasAuthorization: false, policy: policy) == .store
        if let former = plan.parts, base == nil || !mayBeKept { worker.shared.store.drop(former, of: request.key) }
        let forLeader =
            base == nil && facts.contains(.excludesFields)
            ? response.withHead(keptPartHead(head, facts, isForLeader: true)) : nil
        handOut(makeFetchedResponse(response, forLeader: forLeader, from: head, decision))
        return true
    }

    /// Whether it is of the same variant of the same representation as what is stored.
    private func belongs(_ part: ReceivedPart, _ fields: FieldView, to stored: StoredResponse) -> Bool {
        // A tag identifies a representation of one URL (RFC 9110 §8.8.3): under a key that several URLs share, only as
        // long as the response says that they are the same (No-Vary-Search draft).
        guard !request.isUnderVariation || Placement.stated(fields) == request.variation?.rule else { return false }
        let (head, requestFields) = (stored.head, request.fields)
        guard let content = stored.parts?.content, part.belongs(to: content, fields: fields, stored: head.view) else {
            return false
        }
        let rule = request.varyRule(fields)
        return !fields.contains(.vary)
            || (rule == stored.varyRule && stored.variantKey == VariantKey(requestFields.view, under: rule))
    }

    /// The response is not a part that can be used.
    /// - Returns: false where the leader gets it as it is.
    private func partsDoNotFit(_ head: borrowing ReceivedHead) -> Bool {
        let status = head.head.status
        guard let former = plan.parts else {
            // Later requests fetch alone: an origin that ignores ranges, or sends parts that cannot be kept, will do so
            // again.
            let isTooLarge = status == .ok && head.head.framing.announcedLength ?? 0 > worker.storage.objectLimit
            if status == .partialContent || isTooLarge || (status == .rangeNotSatisfiable && leaderWasReleased) {
                remember(.part)
            }
            return false
        }
        if status == .ok || status == .partialContent || status == .rangeNotSatisfiable {
            worker.shared.store.drop(former, of: request.key)
        }
        guard status == .partialContent || status == .rangeNotSatisfiable else { return false }
        // It must not be mixed with what was stored, and is not all that the leader wants: all look up again, with
        // nothing stored.
        end(.released)
        return true
    }

    private func keptPartHead(_ head: borrowing ReceivedHead, _ facts: ResponseFacts, isForLeader: Bool) -> HeadBlock {
        StoredFields.head(
            keeping: head.fields, facts: facts, policy: request.route.policy,
            dropping: FieldSet(.contentLength, .contentRange),
            isForLeader: isForLeader)
    }

    // MARK: Storing

    /// The part that was fetched, or as much of it as arrived.
    func store(part range: Range<Int>, of length: Int?, from response: StoredResponse) {
        let arrived = response.bodyToFollow()
        let body =
            arrived.completeLength == range.count
            ? arrived : GrowingBody(joining: [(arrived, 0..<range.count)], budget: worker.shared.budget)
        let stored = StoredResponse(
            head: response.head, facts: response.facts,
            body: GrowingBody(joining: [], budget: worker.shared.budget),
            parts: StoredParts([StoredParts.Run(range, body)], length: length),
            varyRule: response.varyRule, variantKey: response.variantKey, groups: response.groups)
        worker.recorder.count(
            worker.shared.store.storeParts(
                stored, bringing: range, under: storeKey, generation: placement.storeGeneration, requested: sentAt))
    }

    /// The body broke off, or nobody wants the rest. Under a strong entity tag what is there may be completed later
    /// (RFC 9111 §3.3).
    func keepWhatArrived(of response: StoredResponse) {
        let policy = request.route.policy
        guard isToBeStored, method == .get, policy.storesPartialContent, response.facts.status == .ok,
            response.facts.contains(.hasStrongETag)
        else { return }
        let body = response.bodyToFollow()
        let arrived = body.length
        guard body.keepsStart, arrived > 0, arrived < arriving.length ?? .max else { return }
        let (first, length) =
            if let part = arriving.part { (part.range.lowerBound, part.length) } else { (0, arriving.length) }
        store(part: first..<first + arrived, of: length, from: response)
    }
}
