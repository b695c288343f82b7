import Bytes
import HTTPSemantics
import Routing
import SharedTier
import Storage
import Upstream

/// Stores a stale response, which the engine has whole, as if this machine had fetched it: it may be used while it is
/// revalidated, or if the origin fails, by the rules for stale responses.
///
/// A temporary value of one fetch that has not begun, on its loop.
struct TierAdoption {
    private let fetch: Fetch
    private let operation: FetchOperation
    private let session: TierSession

    init(of fetch: Fetch, _ operation: FetchOperation, by session: TierSession) {
        self.fetch = fetch
        self.operation = operation
        self.session = session
    }

    /// - Returns: whether the response is stored here now. A response that did not come whole with the answer is not.
    func adopt(_ stale: TierStored) -> Bool {
        fetch.noteAsking()
        var reader = TierReader(stale.token, seal: session.engine.seal)
        guard let pieces = try? reader.read(stale.entries), reader.state == .complete, reader.length == stale.length,
            case .head(let bytes, _)? = pieces.first,
            case .good(let offer) = session.judge(
                stale.freshened ?? bytes, under: stale.token, at: stale.at, length: stale.length),
            offer.record.elsewhere.isEmpty
        else { return false }
        let text = offer.text(isHit: true)
        var parser = ResponseHeadParser()
        guard case .complete? = try? parser.parse(text.span) else { return false }
        let received = ReceivedHead(parser.head, fields: parser.view(in: text.span), content: nil)
        guard let response = renamed(received, pieces) else { return false }
        let operation = operation
        return fetch.context.shared.store.store(
            response, under: fetch.request.key, requestTime: fetch.sentAt, unless: { operation.wasInvalidated })
            == .stored
    }

    /// The response with the names that clients know (`rewrite-location`), as a fetched one.
    private func renamed(_ head: borrowing ReceivedHead, _ pieces: [TierReader.Piece]) -> StoredResponse? {
        let request = fetch.request
        if let names = request.route.originNames, let renamed = request.renamed(head.fields, names) {
            return response(head.with(renamed.view), pieces)
        }
        return response(head, pieces)
    }

    private func response(_ head: borrowing ReceivedHead, _ pieces: [TierReader.Piece]) -> StoredResponse? {
        let (request, context, status) = (fetch.request, fetch.context, head.head.status)
        let policy = request.route.policy
        let facts = ResponseFacts(
            status: status, fields: head.fields, requestTime: fetch.sentAt, responseTime: context.moment,
            policy: policy)
        let tags = context.tags.tags(
            in: head.fields, by: policy.tagFields, at: request.authority, requested: fetch.generation)
        let decision = HeadDecision.on(
            facts, head.fields, length: head.head.framing.announcedLength, for: fetch.plan, policy,
            hasPassCookie: request.hasPassCookie(by: context.loopSettings), objectLimit: context.storage.objectLimit,
            isOutdated: tags?.forbidStoring(facts) ?? false, wasInvalidated: operation.wasInvalidated)
        guard decision.willBeStored, decision.sharing.isForSeveral, !facts.contains(.excludesFields) else { return nil }
        let body = GrowingBody(budget: context.shared.budget, expectedLength: decision.contentLength)
        for case .content(let bytes) in pieces {
            guard case .accepted = body.append(bytes.span) else {
                body.fail()
                return nil
            }
        }
        body.complete()
        let kept = StoredFields.head(
            keeping: head.fields, facts: facts, policy: policy, dropping: FieldSet(.contentLength), isForLeader: false)
        return StoredResponse(
            head: request.route.kept(kept, of: status), facts: facts, body: body,
            variant: facts.contains(.varies) ? request.variant(under: request.varyRule(head.fields)) : nil, tags: tags)
    }
}
