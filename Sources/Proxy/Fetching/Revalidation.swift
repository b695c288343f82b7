import HTTPSemantics
import Storage

/// What an answer of the origin says of what is stored under the key that it was asked under, and what becomes of that
/// (RFC 9111 §4.3).
///
/// A value of the moment, of one fetch, on its loop; made only where something is stored. It changes the store, and
/// counts what became of each change.
struct Revalidation {
    /// The one that led.
    let request: ClientRequest
    /// What was stored when it was made is what the answer is about.
    let plan: FetchPlan
    /// When the origin was asked.
    let requestTime: Moment
    /// Of the request's key, from before that.
    let generation: Generation
    /// Whether the request was to go past the cache by one of its cookies: then it changes nothing.
    let hasPassCookie: Bool
    let store: ResponseStore
    let recorder: Recorder

    /// RFC 9111 §4.3.5: what a response to HEAD says of the stored responses to GET.
    /// - Parameter contentLength: that it states.
    func freshen(fromHead fields: FieldView, _ facts: ResponseFacts, contentLength: UInt64?) {
        let policy = request.route.policy
        let requestFields = request.fields
        // It counts what this answer itself says of others, not what the stored ones say.
        guard let resource = plan.resource, facts.speaksForOthers(than: request), !hasPassCookie else { return }
        let ownRule = request.varyRule(fields, facts)
        // What is encoded says nothing of what is not, and the other way round.
        for stored in resource.responses(matching: requestFields.view)
            + resource.partialResponses(matching: requestFields.view)
        where stored.varyRule.hasSameCodings(as: ownRule) {
            let old = stored.head
            // A length that is not known cannot disagree.
            let length =
                stored.parts == nil
                ? stored.bodyLength ?? 0
                : stored.parts?.length ?? contentLength.map { Int(clamping: $0) } ?? 0
            let verdict = HeadFreshening(
                head: fields, headFacts: facts, stored: old.view, storedFacts: stored.facts, storedLength: length)
            switch verdict {
            case .none:
                continue
            case .expire:
                var expired = stored.facts
                expired.expire(at: facts.responseTime)
                recorder.count(restate(stored, expired))
            case .update:
                let newHead = Freshening.head(old, updatedWith: fields, facts: facts, policy: policy)
                let new = updated(stored, under: newHead, by: fields, at: facts.responseTime)
                let rule = request.varyRule(newHead.view, new.facts)
                guard rule == stored.varyRule || new.facts.isForSession(of: request) else {
                    // It was stored for other field values; nobody has confirmed that those requests still get it
                    // (§4.1).
                    store.drop(stored, of: request.key)
                    store.learn(rule, for: request.key)
                    continue
                }
                replace(stored, by: new, isConfirmed: false)
            }
        }
    }

    /// What a 304 confirmed.
    struct Freshened {
        /// With its new fields.
        let response: StoredResponse
        /// Whether it is stored with them.
        let isStored: Bool
        /// The response with the fields that only the leader may see; `nil` where there are none.
        let leaderResponse: StoredResponse?
        /// Whether it is not the leader's alone: what a 304 to `Authorization` tells of another `Vary`, say, is.
        let isForOthers: Bool
    }

    /// RFC 9111 §4.3.4: the stored response that a 304 with `fields` is about; `nil`: it is about nothing that is
    /// stored.
    /// - Parameter clientIsAsked: whether the origin was asked under tags that only the client has, too.
    func freshened(byNotModified fields: FieldView, responseTime: Moment, clientIsAsked: Bool = false) -> Freshened? {
        let policy = request.route.policy
        let notModified = ResponseFacts(
            status: .notModified, fields: fields, requestTime: requestTime, responseTime: responseTime, policy: policy)
        let isForOthers = notModified.speaksForOthers(than: request)
        let requestFields = request.fields
        var selection = FresheningSelection(
            notModified: notModified,
            mayBeForClient: clientIsAsked
                && ClientConditions.isConfirmed(requestFields.view, by: fields, strongly: true))
        let candidates = plan.candidates(for: requestFields.view)
        for candidate in candidates {
            let (storedHead, facts) = (candidate.head, candidate.facts)
            selection.add(storedHead.view, facts: facts, notModified: fields)
        }
        var freshened: Freshened?
        for index in selection.selected {
            let old = candidates[index]
            let newHead = Freshening.head(old.head, updatedWith: fields, facts: notModified, policy: policy)
            let renewed = updated(old, under: newHead, by: fields, at: responseTime)
            let rule = request.varyRule(newHead.view, renewed.facts)
            // If `Vary` changed, the 304 confirms the response for this request only (§4.3.4); whether it suits earlier
            // ones is unknown.
            var new = rule == old.varyRule ? renewed : renewed.with(request.variant(under: rule))
            var leaderHead = Freshening.headForLeader(old.head, old.facts, updatedWith: fields, facts: notModified)
            let confirmsForOthers = isForOthers || (rule == old.varyRule && mayStay(renewed.facts))
            if !isForOthers, confirmsForOthers {
                new = confirmed(old, by: fields, notModified)
                leaderHead = leaderHead ?? newHead
            }
            let isStored = confirmsForOthers && replace(old, by: new, isConfirmed: true)
            // Of several, the client gets the most recent.
            guard freshened == nil else { continue }
            freshened = Freshened(
                response: new, isStored: isStored, leaderResponse: leaderHead.map { new.withHead($0) },
                isForOthers: confirmsForOthers)
        }
        return freshened
    }

    /// What a 304 to one client, which says nothing of others, makes of what the origin lets all have (§3.5): the bytes
    /// are still those, and for how long is renewed; what else it tells is for that client.
    private func confirmed(_ old: StoredResponse, by fields: FieldView, _ notModified: ResponseFacts) -> StoredResponse
    {
        let head = Freshening.head(old.head, confirmedBy: fields, facts: notModified)
        return updated(old, under: head, by: fields, at: notModified.responseTime)
    }

    /// `old` under its new head, whose `Age` and lifetime count from `responseTime` on (RFC 9111 §4.3.4).
    /// - Parameter fields: of the answer that changed the head.
    private func updated(_ old: StoredResponse, under head: HeadBlock, by fields: FieldView, at responseTime: Moment)
        -> StoredResponse
    {
        let facts = ResponseFacts(
            freshened: old.facts, head: head.view, by: fields, requestTime: requestTime, responseTime: responseTime,
            policy: request.route.policy)
        return old.with(head: head, facts: facts, groups: CacheGroups.of(head.view, requestTime: requestTime))
    }

    /// RFC 9111 §4.3.3: a full answer says that this request does not, or no longer, get what is stored. Where the
    /// answer does not take its place, because it is not stored or has another `Vary`, what is stored is from now on
    /// validated before it is used stale: it covers neither a refresh nor a failure. While it is fresh the origin has
    /// promised it; and the next request, which may get something else than this one, can still use its validators.
    /// - Parameters:
    ///   - willBeStored: whether the answer will be.
    ///   - staysHere: whether it belongs under the key that it was asked for under.
    func forbidStaleUse(after answer: ResponseFacts, _ fields: FieldView, willBeStored: Bool, staysHere: Bool) {
        guard let former = plan.stored ?? plan.parts, answer.supersedesStored, answer.speaksForOthers(than: request)
        else { return }
        let rule = request.varyRule(fields, answer)
        // It takes the place of those that would go before it once it is there (`dropVariants`).
        if willBeStored, rule == former.varyRule || (former.goesBefore(rule) && staysHere) { return }
        forbidStaleUse(of: former)
    }

    private func forbidStaleUse(of former: StoredResponse) {
        var facts = former.facts
        facts.forbidStale()
        _ = restate(former, facts)
    }

    /// The stored response gets other rules, but nobody has confirmed it.
    private func restate(_ former: StoredResponse, _ facts: ResponseFacts) -> StoreOutcome {
        let outcome = store.freshen(
            former, by: former.with(head: former.head, facts: facts, groups: former.groups), under: request.key,
            generation: generation, isConfirmed: false)
        // Rather none than one that is used by the rules that no longer hold.
        if outcome == .noRoom { store.drop(former, of: request.key) }
        return outcome
    }

    /// `answer` is stored under the request's key. It answers this request, but some that did so before would go before
    /// it (§4.1, `StoredResponse.Precedence`): requests would be told to fetch again and again. Not sooner: an answer
    /// that breaks off is no reason to lose what was there.
    func dropVariants(before answer: StoredResponse) {
        guard plan.stored != nil, answer.facts.supersedesStored, answer.facts.speaksForOthers(than: request) else {
            return
        }
        let fields = request.fields
        for stored in plan.resource?.responses(matching: fields.view) ?? [] where stored.goesBefore(answer.varyRule) {
            store.drop(stored, of: request.key)
        }
    }

    /// `answer` to a request for a range cannot go with the stored parts, or says that they may not be kept.
    func dropParts(after answer: ResponseFacts) {
        guard let former = plan.parts, answer.speaksForOthers(than: request), !hasPassCookie else { return }
        store.drop(former, of: request.key)
    }

    /// Replaces a stored response by its update, unless that says that it may no longer be stored.
    /// - Parameter isConfirmed: whether it is what GET gets.
    /// - Returns: whether it is there.
    @discardableResult
    private func replace(_ old: StoredResponse, by new: StoredResponse, isConfirmed: Bool) -> Bool {
        guard new.facts.speaksForOthers(than: request), !hasPassCookie else { return false }
        guard Placement.staysUnderItsKey(new, for: request) else {
            store.invalidate(request.key)
            return false
        }
        guard mayStay(new.facts) else {
            store.drop(old, of: request.key)
            return false
        }
        if new.facts.isForSession(of: request) {
            // That it has no lifetime any more holds for all.
            if !old.facts.contains(.separatesRequests) { forbidStaleUse(of: old) }
            return false
        }
        let outcome = store.freshen(
            old, by: new, under: request.key, generation: generation, isConfirmed: isConfirmed)
        recorder.count(outcome)
        return outcome == .stored
    }

    /// Whether what has become so may be stored, as the answer to this request.
    private func mayStay(_ facts: ResponseFacts) -> Bool {
        facts.storability(
            answering: request.facts(asking: .get, hasPassCookie: hasPassCookie), answersTarget: false,
            policy: request.route.policy) == .store
    }
}

/// What an answer to one client may do to what is stored for all.
extension ResponseFacts {
    /// What the origin tells a client that sent `Authorization` concerns that client alone, unless it says otherwise
    /// (RFC 9111 §3.5): what is stored for the others stays as it was. Otherwise anybody could have it evicted.
    func speaksForOthers(than request: ClientRequest) -> Bool {
        !request.hasAuthorization || contains(.allowsAuthorized)
    }

    /// What comes for a request with cookies or fields of its own, and has no lifetime, is for those alike. So are the
    /// fields of a 304, an answer to HEAD or another part: in what is stored, others would get them.
    func isForSession(of request: ClientRequest) -> Bool { contains(.separatesRequests) && request.isOfSession }
}

extension ClientRequest {
    /// What a response on its route with these fields varies by.
    func varyRule(_ fields: FieldView) -> VaryRule { VaryRule(fields, policy: route.policy) ?? .none }

    func varyRule(_ fields: FieldView, _ facts: ResponseFacts) -> VaryRule {
        facts.contains(.varies) ? varyRule(fields) : .none
    }

    /// The variant of a response to the request, where `Vary` is `rule`.
    func variant(under rule: VaryRule) -> Variant {
        let fields = fields
        return Variant(for: fields.view, under: rule)
    }
}
