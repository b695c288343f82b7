import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry
import Upstream

/// Handles the head of the origin's response to a fetch, which confirms a stored response, brings a part or is a
/// response of its own; or the origin's failure.
///
/// ```
/// 304 about a stored response                      answer; release if the parts do not suffice
/// 304 about none, or about an unknown one          ask again, without conditions or without the client's tags
/// 304 about a representation of the leader alone   answerLeader
/// 5xx or failure, with a usable stale response     answer
/// a part that belongs to the stored ones           handOut
/// a part that does not                             release
/// a whole too large for waiters that want a range  release
/// any other                                        handOut
/// ```
///
/// A temporary value of one fetch, on its loop. It changes the stored responses and the markers, but of the fetch only
/// the placement: it returns the action that the fetch has to take.
struct HeadHandling {
    enum Action {
        /// Ask the origin once more.
        case ask(FetchRequestWriter.Conditions)
        /// A response that is already complete is the answer.
        case answer(FetchedResponse)
        /// The leader alone gets this answer: the origin is asked for the others once more.
        case answerLeader(FetchedResponse)
        /// The waiters cannot use the response: they look up again.
        case release
        /// The origin's response is the answer. Its body arrives from now on.
        case handOut(FetchedResponse)
    }

    private let fetch: Fetch
    private let responseTime: Moment
    /// Whether the leader's request goes past the cache because of one of its cookies.
    private let hasPassCookie: Bool

    @inline(__always)
    init(of fetch: Fetch) {
        self.fetch = fetch
        responseTime = fetch.context.moment
        hasPassCookie = fetch.request.hasPassCookie(by: fetch.context.loopSettings)
    }

    // Read from the fetch, not kept: each reference kept would be retained.
    private var request: ClientRequest { fetch.request }
    private var plan: FetchPlan { fetch.plan }
    private var context: LoopContext { fetch.context }
    private var method: Method { fetch.method }
    private var policy: CachingPolicy { request.route.policy }
    /// When the origin was asked.
    private var requestTime: Moment { fetch.sentAt }
    private var announcement: Announcement { Announcement(of: fetch) }

    @inline(__always)
    func action(on head: borrowing ReceivedHead) -> Action {
        // Before anything is decided: what is invalidated and stored follows from the new names.
        if let names = request.route.originNames { return action(on: head, renaming: names) }
        return action(onRenamed: head)
    }

    @inline(never) // Kept out of the code of routes without such names.
    private func action(on head: borrowing ReceivedHead, renaming names: OriginNames) -> Action {
        guard let renamed = request.renamed(head.fields, names) else { return action(onRenamed: head) }
        return action(onRenamed: head.with(renamed.view))
    }

    @inline(__always)
    private func action(onRenamed head: borrowing ReceivedHead) -> Action {
        let status = head.head.status
        if status == .notModified, !plan.isPass { return actionOnNotModified(head) }
        if status.isServerError, let action = standIn(on: .status(status), status: status) { return action }
        if let range = plan.range, let action = actionOnPart(head, of: range) { return action }
        if Invalidation.applies(method: method, status: status) {
            context.invalidate(request, answeredBy: head.fields, status: status, except: fetch.operation)
        }
        return ownResponse(head, on: request.route)
    }

    /// Whether a response that another machine stored would be stored here too, for all: otherwise it is not for the
    /// waiters of this fetch.
    func mayUseStored(_ head: borrowing ReceivedHead) -> Bool {
        let (facts, policy) = (facts(of: head, policy), policy)
        guard !facts.contains(.excludesFields) else { return false }
        let decision = HeadDecision.on(
            facts, head.fields, length: head.head.framing.announcedLength, for: plan, policy,
            hasPassCookie: hasPassCookie, objectLimit: context.storage.objectLimit,
            isOutdated: tags(in: head.fields, policy)?.forbidStoring(facts) ?? false,
            wasInvalidated: fetch.wasInvalidated)
        return decision.willBeStored && decision.sharing == .everyone
    }

    // Not inlined, so that `route` is held once, and its policy, which is large, is not copied.
    @inline(never)
    private func ownResponse(_ head: borrowing ReceivedHead, on route: Route) -> Action {
        let status = head.head.status
        var facts = facts(of: head, route.policy)
        facts.keep(toSession: request.isPersonal)
        if method == .head {
            revalidation.freshen(fromHead: head.fields, facts, contentLength: head.head.contentLength)
        }
        let tags = tags(in: head.fields, route.policy)
        let decision = decide(head, facts, route.policy, tags)
        if method == .get, plan.former != nil {
            revalidation.forbidStaleUse(
                after: facts, head.fields, willBeStored: decision.willBeStored,
                staysHere: fetch.placement.otherKey == nil)
        }
        if status == .ok, isFullResponseUnusable(decision), remembersUnusableResponse(because: decision.sharing) {
            return .release
        }
        let response = makeResponse(head, facts, route.policy, tags, decision)
        let forLeader =
            facts.contains(.excludesFields)
            ? response.withHead(keptHead(head, facts, route.policy, isForLeader: true)) : nil
        return .handOut(fetched(response, forLeader: forLeader, from: head, decision))
    }

    // MARK: A stored response is the answer

    /// The rules for applying the origin's answer to the stored responses.
    private var revalidation: Revalidation {
        Revalidation(
            plan: plan, requestTime: requestTime, generation: fetch.generation, hasPassCookie: hasPassCookie,
            operation: fetch.operation, shared: context.shared, recorder: context.recorder)
    }

    @inline(__always)
    private func tags(in fields: FieldView, _ policy: CachingPolicy) -> ResponseTags? {
        // Tested here too, before the table is retained: most responses have no tags.
        guard TagTable.mayHaveTags(fields, by: policy.tagFields) else { return nil }
        return context.tags.tags(
            in: fields, by: policy.tagFields, at: request.authority, requested: fetch.generation)
    }

    /// Handles a 304 to our own conditions.
    @inline(never) // Rare, as the next ones: kept out of the code of a response of its own.
    private func actionOnNotModified(_ head: borrowing ReceivedHead) -> Action {
        let requestFields = request.fields
        // The 304 names none of the tags sent: ask again without the client's tags, so that the 304 is certain to be
        // about a stored response.
        if fetch.conditions == .storedAndClients, head.fields.entityTag == nil { return .ask(.stored) }
        if let freshened = revalidation.freshened(
            byNotModified: head.fields, responseTime: responseTime, clientIsAsked: fetch.conditions == .storedAndClients
        ) {
            // The new fields may change the outcome of the leader's own conditions, and the leader may want more than
            // the stored parts, or the whole: another look-up, which finds the updated response, asks for that.
            guard (freshened.leaderResponse ?? freshened.response).hasEverything(wantedBy: request) else {
                return .release
            }
            return answer(
                with: freshened.response, forLeader: freshened.leaderResponse, source: .validated,
                status: head.head.status, isStored: freshened.isStored, isForOthers: freshened.isForOthers)
        }
        if fetch.conditions == .storedAndClients, ClientConditions.isConfirmed(requestFields.view, by: head.fields) {
            return answerToLeader(head)
        }
        // The 304 selects no stored response (RFC 9111 §4.3.4): ask for the whole.
        return .ask(.none)
    }

    /// RFC 9111 §4.3.2: only the client that led has the representation that the origin would send. It gets the 304.
    /// The joined requests go on waiting for the whole, which is asked for at once, without conditions, and once
    /// however many they are. If they were released instead, each might send another tag, and they would go through the
    /// same one after another.
    private func answerToLeader(_ head: borrowing ReceivedHead) -> Action {
        let facts = facts(of: head, policy)
        let response = StoredResponse(
            head: keptHead(head, facts, policy, isForLeader: true), facts: facts, body: GrowingBody(lending: .empty))
        let fetched = fetched(response, from: head, .notModifiedForLeader)
        fetched.noteEnd(at: responseTime)
        return .answerLeader(fetched)
    }

    /// A stale response that may be sent in place of the origin's failure.
    /// - Parameter status: the origin's; `nil` if it did not answer.
    @inline(never)
    func standIn(on failure: OriginFailure, status: Status?) -> Action? {
        guard plan.hasStandIn, let stale = context.standIn(for: request, on: failure) else { return nil }
        return answer(with: stale, source: .staleOnError(failure), status: status)
    }

    /// Ends with a response that is already complete.
    /// - Parameters:
    ///   - leaderResponse: `nil` where the leader gets the same response as the others.
    ///   - isStored: whether the response was put into the store as it is.
    ///   - isForOthers: whether the waiters beside the leader might have the response.
    private func answer(
        with stored: StoredResponse, forLeader leaderResponse: StoredResponse? = nil, source: FetchedResponse.Source,
        status: Status?, isStored: Bool = false, isForOthers: Bool = true
    ) -> Action {
        let storedHead = stored.head
        let sharing =
            isForOthers
            ? stored.facts.sharing(
                answering: request.facts(asking: method, hasPassCookie: hasPassCookie), policy: policy)
            : .nobody(.prohibited(.authorization))
        // RFC 9111 §5.2.2.4: after `no-cache`, each request needs a validation of its own; also, the 304 may have made
        // the response private.
        let forWaiters: Sharing = if case .nobody = sharing, source == .validated { sharing } else { .waitersOnly }
        if let operation = fetch.operation {
            if source == .validated {
                if stored.facts.contains(.separatesRequests), announcement.distinguishesRequests(operation) {
                    announcement.rememberSeparation()
                }
                // The next requests do not wait for a response that only their leader may have.
                announcement.rememberIfUnshareable(stored, sharing)
            }
            // After the markers are set, as in `Announcement.announce`.
            operation.close()
        }
        var circumstances = circumstances(of: stored)
        circumstances.otherKey = Placement.staysUnderItsKey(stored, for: request) ? nil : request.sentKey
        circumstances.search = Placement.stated(storedHead.view)
        let fetched = FetchedResponse(
            stored, leaderResponse: leaderResponse, source: source,
            .on(stored: forWaiters, length: stored.bodyLength, isStored: isStored), originStatus: status,
            circumstances)
        fetched.noteEnd(at: responseTime)
        return .answer(fetched)
    }

    // MARK: A part

    /// Handles the head of a response to a request for a range.
    /// - Returns: `nil` if the response is to be treated like any other.
    @inline(never)
    private func actionOnPart(_ head: borrowing ReceivedHead, of range: ByteRangeSpec) -> Action? {
        let length = head.head.framing.announcedLength
        guard let part = ReceivedPart(head.fields, status: head.head.status, contentLength: length, asked: range) else {
            return rejectPart(head)
        }
        // Parts that a purge has removed meanwhile are not completed.
        let stored = plan.parts?.tags?.areRemoved == true ? nil : plan.parts
        let partial = PartialResponse(
            part, head.fields, with: stored, for: request, requestTime: requestTime, responseTime: responseTime)
        // Before `decide`: a part that is not used teaches no query rules.
        guard partial.hasEverythingWanted else { return rejectPart(head) }
        let decision = decide(head, partial.facts, policy, tags(in: head.fields, policy), part: part)
        let keptHead = partial.head
        let response = partial.response(
            makeBody(for: decision),
            tags: context.tags.tags(
                in: keptHead.view, head.fields, after: stored?.tags, by: policy.tagFields, at: request.authority,
                requested: fetch.generation),
            budget: context.shared.budget)
        if !partial.leavesParts { revalidation.dropParts(after: partial.facts) }
        let forLeader = partial.headForLeader.map { response.withHead($0) }
        return .handOut(fetched(response, forLeader: forLeader, keptBy: partial.keeper, from: head, decision))
    }

    /// The response is not a part that can be used.
    /// - Returns: `nil` if the leader gets the response as it is.
    private func rejectPart(_ head: borrowing ReceivedHead) -> Action? {
        let status = head.head.status
        let facts = facts(of: head, policy)
        let appliesToOtherRequests = facts.appliesToOtherRequests(than: request)
        guard let parts = plan.parts else {
            // Later requests fetch alone: an origin that ignores ranges, or sends parts that cannot be kept, will do so
            // again.
            let size = StoredResponse.mostObjectSize(
                head.fields, content: head.head.framing.announcedLength ?? 0, partOf: nil)
            let isTooLarge = status == .ok && size > context.storage.objectLimit
            if status == .partialContent || isTooLarge || (status == .rangeNotSatisfiable && fetch.leaderWasReleased) {
                announcement.remember(appliesToOtherRequests ? .part : .prohibited(.authorization))
            }
            return nil
        }
        // An encoded whole response says nothing of unencoded parts, which other clients may accept.
        let isOfOtherCoding = status == .ok && !request.varyRule(head.fields, facts).hasSameCodings(as: parts.varyRule)
        if status == .ok && !isOfOtherCoding || status == .partialContent || status == .rangeNotSatisfiable {
            revalidation.dropParts(after: facts)
        }
        guard status == .partialContent || status == .rangeNotSatisfiable else { return nil }
        // The response must not be combined with the stored parts, and is not all that the leader wants: all requests
        // look up again. They find no stored parts, or pass by the parts that stay for others.
        if !appliesToOtherRequests { announcement.remember(.prohibited(.authorization)) }
        return .release
    }

    // MARK: A response of its own

    @inline(__always)
    private func facts(of head: borrowing ReceivedHead, _ policy: CachingPolicy) -> ResponseFacts {
        ResponseFacts(
            status: head.head.status, fields: head.fields, requestTime: requestTime, responseTime: responseTime,
            policy: policy)
    }

    /// Decides on a response that the waiters will get. Only this method settles, from a head, the key that the
    /// response belongs under, the query rules learnt for its path, and how its body is kept. Called once for each
    /// exchange whose response is used.
    /// - Parameters:
    ///   - facts: the facts of the response as it would be stored.
    ///   - part: the part of the representation that the content is, if a range was requested and a part came.
    private func decide(
        _ head: borrowing ReceivedHead, _ facts: ResponseFacts, _ policy: CachingPolicy, _ tags: ResponseTags?,
        part: ReceivedPart? = nil
    ) -> HeadDecision {
        let fields = head.fields
        var decision = HeadDecision.on(
            facts, fields,
            length: method == .head
                ? head.head.contentLength.map { Int(clamping: $0) } : head.head.framing.announcedLength,
            part: part, for: plan, policy, hasPassCookie: hasPassCookie,
            objectLimit: context.storage.objectLimit,
            isOutdated: tags?.forbidStoring(facts) ?? false,
            wasInvalidated: fetch.wasInvalidated)
        // False of nearly all responses.
        if fields.contains(.noVarySearch) || request.isUnderVariation {
            // A copy in a local variable avoids the run-time check of exclusive access.
            var placement = fetch.placement
            placement.chooseStoreKey(
                by: fields, for: request, willBeStored: decision.willBeStored, in: context.variations, context.keys)
            fetch.placement = placement
            if placement.otherKey != nil, fetch.wasInvalidated { decision.forbidStoring(because: .outdated) }
        }
        decision.announcesStored = isSureToBeStored(decision)
        return decision
    }

    /// Whether clients may be told that the response is stored: no known fact speaks against it. For an announced
    /// length there must be memory; without one, the last such response must not have been too large. A body that
    /// breaks off, or an invalidation while it arrives, cannot be foreseen. Never to announce a body without a length
    /// as stored would hide the fact from clients of all origins that compress as they send.
    private func isSureToBeStored(_ decision: HeadDecision) -> Bool {
        guard decision.willBeStored else { return false }
        guard let length = decision.contentLength else {
            // The plan of a pass has no resource.
            let resource = plan.resource ?? context.shared.store.resource(request.key)
            return resource?.outgrows(at: responseTime) != true
        }
        return length <= GrowingBody.smallestWindow || context.shared.store.mayKeepWhole(length)
    }

    /// Whether the whole representation was fetched for a range request, so that all requests could have their parts of
    /// it, or the stored response be used, but is too large to be stored, or is for the leader only.
    private func isFullResponseUnusable(_ decision: HeadDecision) -> Bool {
        !plan.isPass && plan.range == nil && !decision.willBeStored
            && request.fields.present.contains(.range) && request.route.maxRanges > 0
            && (decision.isTooLarge || !decision.sharing.isForSeveral)
    }

    /// The whole response is unusable for the waiters, and their ranges may be small: the waiters fetch these
    /// themselves, and for a while so do all other requests.
    /// - Returns: false if the response is for the leader alone, which would only send the same request again.
    private func remembersUnusableResponse(because sharing: Sharing) -> Bool {
        let reason: NotSharedReason = if case .nobody(let reason) = sharing { reason } else { .range }
        // A pass cookie of the leader says nothing of the responses to other requests.
        if reason == .prohibited(.passCookie) { return false }
        guard
            plan.isShared
                || (plan.recordsResultForOthers && !fetch.leaderWasReleased
                    && (plan.stored == nil || reason != .noCache))
        else { return false }
        announcement.remember(reason)
        return true
    }

    private func makeResponse(
        _ head: borrowing ReceivedHead, _ facts: ResponseFacts, _ policy: CachingPolicy, _ tags: ResponseTags?,
        _ decision: HeadDecision
    ) -> StoredResponse {
        let variant = facts.contains(.varies) ? request.variant(under: request.varyRule(head.fields)) : nil
        let isForLeader = plan.isPass && !decision.willBeStored
        // A small response that is complete is packed: no body follows. One with a separate head for the leader is not
        // packed, since the two heads share a body.
        if let content = head.content, content.count <= StoredResponse.packedBody, !facts.contains(.excludesFields) {
            let (lines, key) = (context.scratch, decision.willBeStored ? fetch.storeKey.bytes : .empty)
            lines.removeAll()
            StoredFields.append(
                head.fields, facts: facts, policy: policy, dropping: Self.writtenAnew, isForLeader: isForLeader,
                to: lines)
            request.route.storedFields?.apply(toLinesFrom: 0, in: lines, of: head.head.status)
            return StoredResponse(
                packing: lines.span, body: content, under: key.span, facts: facts, variant: variant, tags: tags)
        }
        return StoredResponse(
            head: keptHead(head, facts, policy, isForLeader: isForLeader), facts: facts, body: makeBody(for: decision),
            variant: variant, tags: tags)
    }

    private func keptHead(
        _ head: borrowing ReceivedHead, _ facts: ResponseFacts, _ policy: CachingPolicy, isForLeader: Bool
    ) -> HeadBlock {
        let kept = StoredFields.head(
            keeping: head.fields, facts: facts, policy: policy, dropping: Self.writtenAnew, isForLeader: isForLeader)
        return request.route.kept(kept, of: head.head.status)
    }

    /// Dropped from the stored head, since the length is written with each response.
    private static let writtenAnew = FieldSet(.contentLength)

    /// Makes the body for the content that arrives from now on.
    private func makeBody(for decision: HeadDecision) -> GrowingBody {
        let (budget, length) = (context.shared.budget, decision.contentLength)
        let window = decision.keeping.isWhole ? nil : context.shared.streamingWindow
        guard let operation = fetch.operation else {
            return GrowingBody(budget: budget, expectedLength: length, window: window)
        }
        // A closure over one strong reference needs no object of its own.
        return GrowingBody(budget: budget, expectedLength: length, window: window) {
            operation.work.handle.post { operation.work.value.bodyHasRoom() }
        }
    }

    /// Makes the object that the waiters get from the origin's response.
    /// - Parameter leaderResponse: `nil` where the leader gets the same response as the others.
    private func fetched(
        _ response: consuming StoredResponse, forLeader leaderResponse: consuming StoredResponse? = nil,
        keptBy keeper: consuming StoredResponse? = nil, from head: borrowing ReceivedHead, _ decision: HeadDecision
    ) -> FetchedResponse {
        let circumstances = circumstances(of: response)
        return FetchedResponse(
            response, leaderResponse: leaderResponse, partKeeper: keeper, source: .origin, decision,
            originStatus: head.head.status, hasAge: head.fields.contains(.age), circumstances)
    }

    @inline(__always)
    private func circumstances(of response: borrowing StoredResponse) -> FetchedResponse.Circumstances {
        FetchedResponse.Circumstances(
            leader: request, otherKey: fetch.placement.otherKey, search: fetch.placement.search,
            server: fetch.exchange?.addressText ?? .empty,
            requestTime: requestTime)
    }
}
