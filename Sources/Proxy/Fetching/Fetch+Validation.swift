import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Upstream

/// A 304, and what is stored besides.
extension Fetch {
    /// What an answer does to what is stored.
    var revalidation: Revalidation {
        Revalidation(
            request: request, plan: plan, requested: sentAt, generation: placement.generation,
            hasPassCookie: hasPassCookie, store: worker.shared.store, recorder: worker.recorder)
    }

    /// Takes a 304 to our own conditions.
    func receivedNotModified(_ head: borrowing ReceivedHead, at now: Moment) {
        let requestFields = request.fields
        if conditions == .storedAndClients, head.fields.entityTag == nil {
            // It names none of the tags asked about: ask without the client's, so that there is no doubt whose it is.
            ask(.stored)
        } else if let (validated, isStored) = revalidation.freshened(byNotModified: head.fields, received: now) {
            answer(with: validated, source: .validated, status: head.head.status, isStored: isStored)
        } else if conditions == .storedAndClients, ClientConditions.isConfirmed(requestFields.view, by: head.fields) {
            answerLeader(with: head, at: now)
        } else {
            // It is about nothing that is stored here (RFC 9111 §4.3.4): ask for the whole.
            ask(.none)
        }
    }

    /// RFC 9111 §4.3.2: the client that led, and nobody else, has what the origin would send. It gets the 304; those
    /// who joined go on waiting for the whole, which is asked for at once, without conditions, and once however many
    /// they are.
    private func answerLeader(with head: borrowing ReceivedHead, at now: Moment) {
        guard let operation else { return }
        let policy = request.route.policy
        let facts = ResponseFacts(
            status: head.head.status, fields: head.fields, requested: sentAt, received: now, policy: policy)
        let decision = HeadDecision.notModifiedForLeader
        let response = makeResponse(head, facts, policy, decision).withHead(
            keptHead(head, facts, policy, isForLeader: true))
        response.looseBody?.complete(trailers: nil)
        let fetched = makeFetchedResponse(response, from: head, decision)
        fetched.noteEnd(at: now)
        leader?.fetch(self, answers: fetched)
        leaderIsAnswered()
        if operation.hasEnded || operation.cancelIfUnattended() { return }
        ask(.none)
    }
}
