import HTTPSemantics
import Routing
import Storage

/// Applies the origin's answer to the responses stored under the key of the fetch (RFC 9111 §4.3).
///
/// A temporary value of one fetch, on its loop; made only where a response is stored. It changes the store, and counts
/// the outcome of each change.
struct Revalidation {
    /// The plan of the fetch. The answer is about the responses that were stored when the plan was made.
    let plan: FetchPlan
    /// When the origin was asked.
    let requestTime: Moment
    /// How many purges of tags there had been when the origin was asked.
    let generation: UInt64
    /// Whether the request goes past the cache because of one of its cookies: then its answer changes no stored
    /// response.
    let hasPassCookie: Bool
    /// The operation of the fetch.
    let operation: FetchOperation?
    let shared: SharedState
    let recorder: Recorder

    var request: ClientRequest { plan.request }
    var store: ResponseStore { shared.store }

    /// RFC 9111 §4.3.5: applies a response to HEAD to the stored responses to GET.
    /// - Parameter contentLength: the `Content-Length` of the response to HEAD.
    @inline(never) // Rare, as the next ones: kept out of the code of `HeadHandling`.
    func freshen(fromHead fields: FieldView, _ facts: ResponseFacts, contentLength: UInt64?) {
        let policy = request.route.policy
        let requestFields = request.fields
        // The test is whether this answer speaks for other requests, not whether the stored ones do.
        guard let resource = plan.resource, facts.appliesToOtherRequests(than: request), !hasPassCookie else { return }
        let ownRule = request.varyRule(fields, facts)
        // An encoded response says nothing of unencoded ones, and the other way round.
        for stored in resource.responses(matching: requestFields.view)
            + resource.partialResponses(matching: requestFields.view)
        where stored.varyRule.hasSameCodings(as: ownRule) {
            let old = stored.head
            // An unknown length cannot disagree.
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
                let newHead = request.route.kept(
                    Freshening.head(old, updatedWith: fields, facts: facts, policy: policy), updatedBy: fields)
                let new = updated(stored, under: newHead, by: fields, at: facts.responseTime)
                let rule = request.varyRule(newHead.view, new.facts)
                guard rule == stored.varyRule || new.facts.isForSession(of: request) else {
                    // The response was stored for other field values; the origin has not confirmed that requests with
                    // such values still get it (§4.1).
                    store.drop(stored, of: request.key)
                    store.learn(rule, for: request.key)
                    continue
                }
                replace(stored, by: new, isConfirmed: false)
            }
        }
    }

    /// A response that a 304 confirmed.
    struct Freshened {
        /// The response with its new fields.
        let response: StoredResponse
        /// Whether it is stored with its new fields.
        let isStored: Bool
        /// The response with the fields that only the leader may see; `nil` where there are none.
        let leaderResponse: StoredResponse?
        /// Whether other requests may have it too; after a 304 to `Authorization` with another `Vary`, for example,
        /// they may not.
        let isForOthers: Bool
    }

    /// RFC 9111 §4.3.4: the stored response that a 304 with `fields` selects; `nil` if it selects none.
    /// - Parameter clientIsAsked: whether the request to the origin included tags that only the client has.
    func freshened(byNotModified fields: FieldView, responseTime: Moment, clientIsAsked: Bool = false) -> Freshened? {
        let policy = request.route.policy
        let notModified = ResponseFacts(
            status: .notModified, fields: fields, requestTime: requestTime, responseTime: responseTime, policy: policy)
        let isForOthers = notModified.appliesToOtherRequests(than: request)
        let requestFields = request.fields
        var selection = FresheningSelection(
            notModified: notModified,
            mayBeForClient: clientIsAsked
                && ClientConditions.isConfirmed(requestFields.view, by: fields, strongly: true))
        // A 304 brings nothing back that a purge has removed meanwhile.
        let candidates = plan.candidates.filter { $0.tags?.areRemoved != true }
        for candidate in candidates {
            let (storedHead, facts) = (candidate.head, candidate.facts)
            selection.add(storedHead.view, facts: facts, notModified: fields)
        }
        var freshened: Freshened?
        for index in selection.selected {
            let old = candidates[index]
            let newHead = request.route.kept(
                Freshening.head(old.head, updatedWith: fields, facts: notModified, policy: policy), updatedBy: fields)
            let renewed = updated(old, under: newHead, by: fields, at: responseTime)
            let rule = request.varyRule(newHead.view, renewed.facts)
            // If `Vary` changed, the 304 confirms the response for this request only (§4.3.4); whether the response
            // suits earlier requests is unknown.
            var new = rule == old.varyRule ? renewed : renewed.with(request.variant(under: rule))
            var leaderHead = Freshening.headForLeader(old.head, old.facts, updatedWith: fields, facts: notModified)
                .map { request.route.kept($0, updatedBy: fields) }
            let freshensSharedResponse = isForOthers || (rule == old.varyRule && mayStay(renewed.facts))
            if !isForOthers, freshensSharedResponse {
                new = confirmed(old, by: fields, notModified)
                leaderHead = leaderHead ?? newHead
            }
            let isStored = freshensSharedResponse && replace(old, by: new, isConfirmed: true)
            // Of several responses, the client gets the most recent.
            guard freshened == nil else { continue }
            freshened = Freshened(
                response: new, isStored: isStored, leaderResponse: leaderHead.map { new.withHead($0) },
                isForOthers: freshensSharedResponse)
        }
        return freshened
    }

    /// Applies a 304 that is for one client to a response that all clients may have (§3.5): it confirms the bytes and
    /// renews the lifetime; its other fields are for that client. By the letter of §4.3.4 they would be merged into the
    /// stored ones, whose `public` then allows them to all clients: `X-User: me` would go to everybody. But the origin
    /// gave that directive for the response that it came with.
    private func confirmed(_ old: StoredResponse, by fields: FieldView, _ notModified: ResponseFacts) -> StoredResponse
    {
        let head = Freshening.head(old.head, confirmedBy: fields, facts: notModified)
        return updated(old, under: head, by: fields, at: notModified.responseTime)
    }

    /// `old` under its new head, whose `Age` and lifetime count from `responseTime` on (RFC 9111 §4.3.4).
    /// - Parameter fields: the fields of the answer that changed the head.
    private func updated(_ old: StoredResponse, under head: HeadBlock, by fields: FieldView, at responseTime: Moment)
        -> StoredResponse
    {
        let facts = ResponseFacts(
            freshened: old.facts, head: head.view, by: fields, requestTime: requestTime, responseTime: responseTime,
            policy: request.route.policy)
        let tags = shared.tags.tags(
            in: head.view, fields, after: old.tags, by: request.route.policy.tagFields, at: request.authority,
            requested: generation)
        return old.with(head: head, facts: facts, tags: tags)
    }

    /// RFC 9111 §4.3.3: a full response says that this request does not, or no longer, get the stored one. If the full
    /// response does not replace it, because it is not stored or has another `Vary`, the stored one is from now on
    /// validated before it is used stale: it covers neither a refresh nor a failure. It stays usable while it is fresh,
    /// as the origin has promised; and the next request, which may get another response than this one, can still use
    /// its validators.
    /// - Parameters:
    ///   - willBeStored: whether the answer will be stored.
    ///   - staysHere: whether the answer belongs under the key of the fetch.
    @inline(never)
    func forbidStaleUse(after answer: ResponseFacts, _ fields: FieldView, willBeStored: Bool, staysHere: Bool) {
        guard let former = plan.former, answer.supersedesStored,
            answer.appliesToOtherRequests(than: request)
        else { return }
        let rule = request.varyRule(fields, answer)
        // Once stored, the answer replaces the responses that would be preferred over it (`dropVariants`).
        if willBeStored, rule == former.varyRule || (former.goesBefore(rule) && staysHere) { return }
        forbidStaleUse(of: former)
    }

    private func forbidStaleUse(of former: StoredResponse) {
        var facts = former.facts
        facts.forbidStale()
        _ = restate(former, facts)
    }

    /// The stored response gets other facts without a confirmation by the origin.
    private func restate(_ former: StoredResponse, _ facts: ResponseFacts) -> StoreOutcome {
        let outcome = store.freshen(
            former, by: former.with(facts: facts), under: request.key, isConfirmed: false)
        // Dropping the response is better than using it by facts that no longer hold.
        if outcome == .noRoom { store.drop(former, of: request.key) }
        return outcome
    }

    /// `answer` is stored under the request's key. Drops the responses that match the request and would be preferred
    /// over `answer` (§4.1, `StoredResponse.Precedence`): with them, requests would be fetched again and again. Not
    /// done sooner: an answer that breaks off is no reason to lose the stored ones.
    func dropVariants(before answer: StoredResponse) {
        guard plan.stored != nil, answer.facts.supersedesStored, answer.facts.appliesToOtherRequests(than: request)
        else {
            return
        }
        let fields = request.fields
        for stored in plan.resource?.responses(matching: fields.view) ?? [] where stored.goesBefore(answer.varyRule) {
            store.drop(stored, of: request.key)
        }
    }

    /// `answer` to a range request cannot be combined with the stored parts, or says that they may not be kept: drops
    /// them.
    func dropParts(after answer: ResponseFacts) {
        guard let former = plan.parts, answer.appliesToOtherRequests(than: request), !hasPassCookie else { return }
        store.drop(former, of: request.key)
    }

    /// Replaces a stored response by its update, unless the update may no longer be stored.
    /// - Parameter isConfirmed: whether the origin confirmed that a GET gets the response.
    /// - Returns: whether the update is stored.
    @discardableResult
    private func replace(_ old: StoredResponse, by new: StoredResponse, isConfirmed: Bool) -> Bool {
        guard new.facts.appliesToOtherRequests(than: request), !hasPassCookie else { return false }
        guard Placement.staysUnderItsKey(new, for: request) else {
            shared.drop(request.key, except: operation)
            return false
        }
        guard mayStay(new.facts) else {
            store.drop(old, of: request.key)
            return false
        }
        if new.facts.isForSession(of: request) {
            // The loss of its lifetime applies to all clients.
            if !old.facts.contains(.separatesRequests) { forbidStaleUse(of: old) }
            return false
        }
        let outcome = store.freshen(old, by: new, under: request.key, isConfirmed: isConfirmed)
        recorder.count(outcome)
        return outcome == .stored
    }

    /// Whether a response with these facts may be stored, as the answer to this request.
    private func mayStay(_ facts: ResponseFacts) -> Bool {
        facts.storability(
            answering: request.facts(asking: .get, hasPassCookie: hasPassCookie), answersTarget: false,
            policy: request.route.policy) == .store
    }
}

/// The effect that an answer to one client may have on the responses stored for all.
extension ResponseFacts {
    /// The origin's answer to a client that sent `Authorization` concerns that client alone, unless it says otherwise
    /// (RFC 9111 §3.5): the responses stored for others stay as they are. Otherwise any client could have them evicted.
    func appliesToOtherRequests(than request: ClientRequest) -> Bool {
        !request.hasAuthorization || contains(.allowsAuthorized)
    }

    /// A response without a lifetime to a request with cookies or fields of its own is for matching requests only. So
    /// are the fields of a 304, of a response to HEAD or of another part: if they were stored, other requests would get
    /// them.
    func isForSession(of request: ClientRequest) -> Bool { contains(.separatesRequests) && request.isPersonal }
}

extension ClientRequest {
    /// The rule by which a response with these fields varies on the request's route.
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
