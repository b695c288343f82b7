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
        let length = head.head.framing.announcedLength
        guard let part = ReceivedPart(head.fields, status: head.head.status, contentLength: length, asked: range) else {
            return partsDoNotFit(head)
        }
        let answer = PartAnswer(part, head.fields, with: plan.parts, for: request, requested: sentAt, received: now)
        let decision = settle(head, answer.facts, request.route.policy, part: part)
        let response = answer.response(makeBody(expecting: part.range.count), budget: worker.shared.budget)
        guard response.hasAll(that: request) else { return partsDoNotFit(head) }
        if let former = plan.parts, answer.base == nil || !answer.mayBeKept {
            worker.shared.store.drop(former, of: request.key)
        }
        let forLeader = answer.headForLeader(head.fields).map { response.withHead($0) }
        handOut(makeFetchedResponse(response, forLeader: forLeader, from: head, decision))
        return true
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
