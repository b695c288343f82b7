import Bytes
import HTTPSemantics
import Routing
import Storage

/// A part of a representation as the origin sent it, and the stored parts that it is combined with, if any (RFC 9111
/// §3.3, §3.4). It depends on its arguments only; the store is not changed yet.
///
/// The origin is trusted only as far as it is consistent: `Content-Range` must answer the request, and to be combined
/// with stored parts, the entity tag must be the same and strong, and the lengths must agree.
///
/// | other response to the request for a part | effect |
/// | --- | --- |
/// | another 206 with all that the leader asked for | replaces the stored parts |
/// | a 206 without that, or 416 | evicts the stored parts; all waiters look again |
/// | the same, if no parts are stored | goes to the leader as it is; after the 206 later requests fetch alone |
/// | a 304 that confirms no stored response | the origin is asked once more, without conditions |
///
/// An answer to one client (`ResponseFacts.appliesToOtherRequests`) evicts no parts. A part's `Set-Cookie` and private fields
/// go to its leader, as those of a 304 do; a part whose `Set-Cookie` may not be shared is neither shared nor stored. A
/// part for a session is stored under the stored fields (`keeper`).
struct PartialResponse {
    private let part: ReceivedPart
    private let request: ClientRequest
    /// The stored parts of the same variant of the same representation.
    let base: StoredResponse?
    /// The head to store: the head of the stored parts updated from this 206, or the 206's own.
    let head: HeadBlock
    /// Whether the 206's fields are for a client with `Authorization`, and say nothing of other clients (RFC 9111
    /// §3.5): the others keep the stored fields.
    private let fieldsAreForLeaderOnly: Bool
    /// The head with the fields that only the leader may see; `nil` if there are none.
    let headForLeader: HeadBlock?
    /// The facts of the whole response as the leader gets it: a `Set-Cookie` counts, whether or not it is kept.
    let facts: ResponseFacts

    /// - Parameters:
    ///   - fields: the fields of the 206.
    ///   - stored: the parts that were stored when the range was asked for.
    ///   - request: the request that led.
    ///   - requestTime: when the origin was asked.
    init(
        _ part: ReceivedPart, _ fields: FieldView, with stored: StoredResponse?, for request: ClientRequest,
        requestTime: Moment, responseTime: Moment
    ) {
        self.part = part
        self.request = request
        let policy = request.route.policy
        var update = ResponseFacts(
            status: .ok, fields: fields, requestTime: requestTime, responseTime: responseTime, policy: policy)
        update.keep(toSession: request.isPersonal)
        base = stored.flatMap { Self.belongs(part, fields, update, to: $0, for: request) ? $0 : nil }
        // §3.4: the new fields take the place of the stored ones.
        let updated =
            base.map {
                request.route.kept(
                    Freshening.head($0.head, updatedWith: fields, facts: update, policy: policy), updatedBy: fields)
            } ?? Self.head(fields, update, request.route, isForLeader: false)
        let forLeader =
            if let base {
                Freshening.headForLeader(base.head, base.facts, updatedWith: fields, facts: update)
                    .map { request.route.kept($0, updatedBy: fields) }
            } else {
                update.contains(.excludesFields) ? Self.head(fields, update, request.route, isForLeader: true) : nil
            }
        let told = forLeader ?? updated
        facts =
            base.map { stored in
                ResponseFacts(
                    freshened: stored.facts, head: told.view, by: fields, requestTime: requestTime,
                    responseTime: responseTime, policy: policy)
            } ?? update
        let stays = update.appliesToOtherRequests(than: request) ? nil : base?.head
        fieldsAreForLeaderOnly = stays != nil
        let kept = stays ?? updated
        (head, headForLeader) = (kept, stays == nil ? forLeader : told)
    }

    /// Whether the stored parts stay. A cookie concerns only the client that it is set for.
    var leavesParts: Bool {
        guard base != nil else { return false }
        let policy = request.route.policy
        switch facts.storability(answering: .plainGet, answersTarget: false, policy: policy) {
        case .store, .doNotStore(.prohibited(.setCookie)): return true
        case .storePart, .doNotStore: return false
        }
    }

    /// Whether the stored parts and the new one contain all that the leader wants.
    var hasEverythingWanted: Bool {
        var content = base?.parts?.content ?? PartialContent(0..<0, of: part.length)
        return content.add(PartialContent(part.range, of: part.length))
            && request.use(of: content, head, facts) == .answers
    }

    /// The response whose fields the part is stored with, if not its own: its own fields are for one session or one
    /// client, while its bytes are the same for all clients under the same tag.
    var keeper: StoredResponse? {
        guard let base else { return nil }
        guard facts.isForSession(of: request) else { return fieldsAreForLeaderOnly ? base : nil }
        var facts = base.facts
        // The loss of its lifetime applies to all clients.
        if !facts.contains(.separatesRequests) { facts.forbidStale() }
        return base.with(facts: facts)
    }

    /// The response for all waiters: the stored parts, and the one that arrives.
    /// - Parameters:
    ///   - body: the body of the part.
    ///   - tags: those that the head to store names.
    func response(_ body: GrowingBody, tags: ResponseTags?, budget: MemoryBudget) -> StoredResponse {
        let run = StoredParts.Run(part.range, body)
        let parts = base?.parts?.adding(run, length: part.length, budget: budget)
        return StoredResponse(
            head: head, facts: facts, body: body, parts: parts ?? StoredParts([run], length: part.length),
            variant: request.variant(under: request.varyRule(head.view, facts)), tags: tags)
    }

    /// Whether the part is of the same variant of the same representation as the stored ones.
    private static func belongs(
        _ part: ReceivedPart, _ fields: FieldView, _ facts: ResponseFacts, to stored: StoredResponse,
        for request: ClientRequest
    ) -> Bool {
        // A tag identifies a representation of one URL (RFC 9110 §8.8.3). Under a key that several URLs share, it
        // counts only as long as the response says that their representations are the same (No-Vary-Search draft).
        guard !request.isUnderVariation || Placement.stated(fields) == request.variation?.rule else { return false }
        let head = stored.head
        guard let content = stored.parts?.content, part.belongs(to: content, fields: fields, stored: head.view) else {
            return false
        }
        guard fields.contains(.vary) else { return true }
        // A part under `If-Range` may leave out `Content-Encoding` (RFC 9110 §15.3.7).
        let updated = Freshening.head(head, updatedWith: fields, facts: facts, policy: request.route.policy)
        let rule = request.varyRule(updated.view)
        return rule == stored.varyRule && stored.variantKey == request.variant(under: rule).key
    }

    private static func head(
        _ fields: FieldView, _ facts: ResponseFacts, _ route: Route, isForLeader: Bool
    ) -> HeadBlock {
        let head = StoredFields.head(
            keeping: fields, facts: facts, policy: route.policy,
            dropping: StoredFields.ofContent.union(FieldSet(.contentLength)), isForLeader: isForLeader)
        return route.kept(head, of: facts.status)
    }
}
