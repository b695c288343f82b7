import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Upstream

/// Updating what is stored by what the origin says of it (RFC 9111 §4.3).
extension Fetch {
    /// RFC 9111 §4.3.5: what a response to HEAD says of the stored responses to GET.
    func freshenFromHead(_ head: borrowing ReceivedHead, _ facts: ResponseFacts) {
        let policy = request.route.policy
        let fields = request.fields
        for stored in (plan.resource?.responses ?? []) + (plan.resource?.partialResponses ?? [])
        where stored.answers(fields.view) {
            let old = stored.head
            // A length that is not known cannot disagree.
            let length =
                stored.parts == nil
                ? stored.bodyLength ?? 0
                : stored.parts?.length ?? head.head.contentLength.map { Int(clamping: $0) } ?? 0
            let verdict = HeadFreshening(
                head: head.fields, headFacts: facts, stored: old.view, storedFacts: stored.facts, storedLength: length)
            let new: StoredResponse
            switch verdict {
            case .none:
                continue
            case .expire:
                var expired = stored.facts
                expired.expire(at: worker.moment)
                new = stored.with(head: old, facts: expired, groups: stored.groups)
            case .update:
                let newHead = Freshening.head(old, updatedWith: head.fields, facts: facts, policy: policy)
                let newFacts = ResponseFacts(
                    freshened: stored.facts, head: newHead.view, by: head.fields, requested: sentAt,
                    received: facts.received,
                    policy: policy)
                let rule = varyRule(newHead, newFacts)
                guard rule == stored.varyRule || !speaksForOthers(newFacts) else {
                    // It was stored for other field values; nobody has confirmed that those requests still get it
                    // (§4.1).
                    worker.shared.store.drop(stored, of: request.key)
                    worker.shared.store.learn(rule, for: request.key)
                    continue
                }
                new = stored.with(
                    head: newHead, facts: newFacts, groups: CacheGroups.of(newHead.view, requested: sentAt))
            }
            replace(stored, by: new)
        }
    }

    /// Takes a 304 to our own conditions.
    func receivedNotModified(_ head: borrowing ReceivedHead, at now: Moment) {
        let requestFields = request.fields
        if conditions == .storedAndClients, head.fields.entityTag == nil {
            // It names none of the tags asked about: ask without the client's, so that there is no doubt whose it is.
            ask(.stored)
        } else if let (validated, isStored) = freshened(by: head, at: now) {
            answer(with: validated, source: .validated, status: head.head.status, isStored: isStored)
        } else if conditions == .storedAndClients, ClientConditions.isConfirmed(requestFields.view, by: head.fields) {
            answerLeader(with: head, at: now)
        } else {
            // It is about nothing that is stored here (RFC 9111 §4.3.4): ask for the whole.
            ask(.none)
        }
    }

    /// RFC 9111 §4.3.4: the stored response that the 304 is about, with its new fields, and whether it is stored with
    /// them.
    private func freshened(by head: borrowing ReceivedHead, at now: Moment) -> (StoredResponse, isStored: Bool)? {
        let policy = request.route.policy
        let notModified = ResponseFacts(
            status: head.head.status, fields: head.fields, requested: sentAt, received: now, policy: policy)
        var selection = FresheningSelection(notModified: notModified)
        let candidates = plan.validated
        for stored in candidates {
            let storedHead = stored.head
            selection.add(storedHead.view, facts: stored.facts, notModified: head.fields)
        }
        var chosen: (response: StoredResponse, isStored: Bool, answersRequest: Bool)?
        for index in selection.selected {
            let old = candidates[index]
            let newHead = Freshening.head(old.head, updatedWith: head.fields, facts: notModified, policy: policy)
            let facts = ResponseFacts(
                freshened: old.facts, head: newHead.view, by: head.fields, requested: sentAt, received: now,
                policy: policy)
            let fields = request.fields
            let rule = varyRule(newHead, facts)
            // If `Vary` changed, the 304 confirms the response for this request only (§4.3.4); whether it suits earlier
            // ones is unknown.
            let updated = old.with(head: newHead, facts: facts, groups: CacheGroups.of(newHead.view, requested: sentAt))
            let new = rule == old.varyRule ? updated : updated.varying(by: rule, for: fields.view)
            let isStored = replace(old, by: new)
            // The origin chose it for this request, even where it was stored for one with other fields (§4.1).
            let answersRequest = new.answers(fields.view)
            if chosen == nil || answersRequest { chosen = (new.answering(fields.view), isStored, answersRequest) }
        }
        guard let chosen else { return nil }
        guard chosen.isStored, !chosen.answersRequest, !hasPassCookie else { return (chosen.response, chosen.isStored) }
        // It becomes a variant of its own, which the next request with these fields finds.
        let outcome = worker.shared.store.store(
            chosen.response, under: request.key, generation: placement.generation, requested: sentAt, popularity: 0)
        worker.recorder.count(outcome)
        return (chosen.response, outcome == .stored)
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

    /// Replaces a stored response by its update, unless that says that it may no longer be stored.
    /// - Returns: whether it is there.
    @discardableResult
    private func replace(_ old: StoredResponse, by new: StoredResponse) -> Bool {
        guard speaksForOthers(new.facts), !hasPassCookie else { return false }
        guard staysUnderItsKey(new) else {
            worker.shared.store.invalidate(request.key)
            return false
        }
        let mayStay = new.facts.storability(
            method: .get, request: request.directives, hasAuthorization: request.hasAuthorization,
            policy: request.route.policy)
        guard mayStay == .store else {
            worker.shared.store.drop(old, of: request.key)
            return false
        }
        let outcome = worker.shared.store.freshen(old, by: new, under: request.key, generation: placement.generation)
        worker.recorder.count(outcome)
        return outcome == .stored
    }

    /// RFC 9111 §4.3.3: a full answer says that this request does not, or no longer, get what is stored. Where the
    /// answer does not take its place, because it is not stored or has another `Vary`, what is stored is from now on
    /// validated before it is used stale: it covers neither a refresh nor a failure. While it is fresh the origin has
    /// promised it; and the next request, which may get something else than this one, can still use its validators.
    func forbidStaleUse(after answer: ResponseFacts, _ fields: FieldView) {
        guard !plan.isPass, method == .get, let former = plan.stored, answer.supersedesStored, speaksForOthers(answer)
        else { return }
        let rule = answer.contains(.varies) ? varyRule(fields) : .none
        // Without `Vary` it takes the place of others once it is there (`dropVariants`).
        if keeping == .stored, rule == former.varyRule || (rule.isEmpty && placement.otherKey == nil) { return }
        var facts = former.facts
        facts.forbidStale()
        _ = worker.shared.store.freshen(
            former, by: former.with(head: former.head, facts: facts, groups: former.groups), under: request.key,
            generation: placement.generation)
    }

    /// `answer` is stored. Without `Vary` it may answer all that the variants for this request did, but those would go
    /// before it (§4.1). Not sooner: an answer that breaks off is no reason to lose what was there.
    func dropVariants(before answer: StoredResponse) {
        guard answer.varyRule.isEmpty, placement.otherKey == nil, !plan.isPass, method == .get, plan.stored != nil,
            answer.facts.supersedesStored,
            speaksForOthers(answer.facts)
        else { return }
        let fields = request.fields
        for stored in plan.resource?.responses ?? [] where !stored.varyRule.isEmpty && stored.answers(fields.view) {
            worker.shared.store.drop(stored, of: request.key)
        }
    }

    /// What the origin tells a client that sent `Authorization` concerns that client alone, unless it says otherwise
    /// (RFC 9111 §3.5): what is stored for the others stays as it was. Otherwise anybody could have it evicted.
    private func speaksForOthers(_ facts: ResponseFacts) -> Bool {
        !request.hasAuthorization || facts.contains(.allowsAuthorized)
    }

    func varyRule(_ head: HeadBlock, _ facts: ResponseFacts) -> VaryRule {
        facts.contains(.varies) ? varyRule(head.view) : .none
    }
}
