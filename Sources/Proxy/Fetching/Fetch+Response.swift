import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Telemetry
import Upstream

/// From the origin's response to those who wait, and into the store.
extension Fetch: ExchangeHandler {
    func exchange(_ exchange: Exchange, interim head: borrowing ReceivedHead) {
        progressed(at: worker.now)
        if head.head.status == .continue, !awaitsContinue { return }
        let buffer = ByteBuffer(capacity: 256)
        buffer.appendStatusLine(head.head.status)
        // Framing fields have no place in a 1xx (RFC 9110 §8.6).
        buffer.appendFields(head.fields, connection: head.head.connection, dropping: .framing)
        buffer.appendLineEnd()
        let interim = buffer.copied()
        leader?.fetch(self, received: interim)
        // If it sets a cookie, or answers a request with credentials, it goes to the leader only: nobody knows yet who
        // may share the final response.
        if plan.isShared, !head.fields.contains(.setCookie), request.fields.present.isDisjoint(with: Self.credentials) {
            operation?.interims.append(interim)
        }
    }

    /// Fields by which an origin may recognise the client.
    private static let credentials = FieldSet(.authorization, .cookie)

    func exchange(_ exchange: Exchange, received head: borrowing ReceivedHead) {
        guard state == .asking else { return }
        let now = worker.moment
        progressed(at: now.monotonic)
        let status = head.head.status
        if status == .notModified, !plan.isPass { return receivedNotModified(head, at: now) }
        if status.isServerError, let stale = usableStale(on: .status(status)) {
            return answer(with: stale, source: .staleOnError(.status(status)), status: status)
        }
        if let range = plan.range, receivedPart(head, of: range, at: now) { return }
        if Invalidation.applies(method: method, status: status),
            let next = worker.invalidate(request, answeredBy: head.fields, status: status, after: placement.generation)
        {
            placement.moveOn(to: next)
        }
        // Read once and passed on: the value is large.
        let policy = request.route.policy
        let facts = ResponseFacts(
            status: status, fields: head.fields, requested: sentAt, received: now, policy: policy,
            hasCookies: request.hasCookies)
        if method == .head {
            revalidation.freshen(fromHead: head.fields, facts, contentLength: head.head.contentLength)
        }
        let decision = settle(head, facts, policy)
        if method == .get, plan.stored != nil {
            revalidation.forbidStaleUse(
                after: facts, head.fields, willBeStored: decision.keeping == .stored, staysHere: !isElsewhere)
        }
        if !plan.isPass, plan.range == nil, decision.keeping != .stored, status == .ok,
            request.fields.present.contains(.range),
            decision.length ?? 0 > worker.storage.objectLimit || !decision.sharing.isForSeveral,
            releaseAll(because: decision.sharing)
        {
            return
        }
        let response = makeResponse(head, facts, policy, decision)
        let forLeader =
            facts.contains(.excludesFields) ? response.withHead(keptHead(head, facts, policy, isForLeader: true)) : nil
        handOut(makeFetchedResponse(response, forLeader: forLeader, from: head, decision))
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
            length: decision.length, willBeStored: decision.keeping == .stored, notStored: decision.notStored,
            hasAge: head.fields.contains(.age),
            circumstances(of: response))
    }

    @inline(__always)
    func circumstances(of response: StoredResponse) -> FetchedResponse.Circumstances {
        FetchedResponse.Circumstances(
            leader: request, otherKey: placement.otherKey, search: placement.search,
            server: exchange?.addressText ?? .empty, requested: sentAt,
            invalidations: response.groups == nil ? nil : worker.shared.groups)
    }

    /// The whole was asked for so that all could have their parts of it, or what is stored be used. But it will not be
    /// kept, and their parts may be small: those who wait ask for what they want themselves, and for a while so does
    /// everybody else.
    /// - Returns: false where the leader, for whom alone it is, would only ask for the same again.
    private func releaseAll(because sharing: Sharing) -> Bool {
        let reason: NotSharedReason = if case .nobody(let reason) = sharing { reason } else { .range }
        // Which says nothing of what others get.
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
        let rule = facts.contains(.varies) ? request.varyRule(head.fields) : nil
        let variantKey = rule.map { rule in
            let fields = request.fields
            return VariantKey(fields.view, under: rule)
        }
        let groups = CacheGroups.of(head.fields, requested: sentAt)
        let willBeStored = decision.keeping == .stored
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
                facts: facts,
                varyRule: rule, variantKey: variantKey, groups: groups)
        }
        return StoredResponse(
            head: keptHead(head, facts, policy, isForLeader: isForLeader), facts: facts,
            body: makeBody(expecting: decision.length),
            varyRule: rule, variantKey: variantKey, groups: groups)
    }

    /// For the content that arrives from now on.
    func makeBody(expecting length: Int?) -> GrowingBody {
        let (budget, window) = (worker.shared.budget, keeping.isWhole ? nil : worker.shared.streamingWindow)
        guard let operation else { return GrowingBody(budget: budget, expectedLength: length, window: window) }
        // A closure over one strong reference needs no object of its own.
        return GrowingBody(budget: budget, expectedLength: length, window: window) {
            operation.work.handle.post { operation.work.value.bodyHasRoom() }
        }
    }

    func keptHead(
        _ head: borrowing ReceivedHead, _ facts: ResponseFacts, _ policy: CachingPolicy, isForLeader: Bool
    ) -> HeadBlock {
        StoredFields.head(
            keeping: head.fields, facts: facts, policy: policy, dropping: Self.writtenAnew, isForLeader: isForLeader)
    }

    /// The length is written with each response.
    private static let writtenAnew = FieldSet(.contentLength)

    func exchange(_ exchange: Exchange, upgradedTo connection: UpstreamConnection, head: borrowing ReceivedHead) {
        let buffer = ByteBuffer(capacity: 512)
        buffer.appendStatusLine(head.head.status, reason: head.fields.bytes.extracting(head.head.reason.range))
        buffer.appendFields(head.fields, connection: head.head.connection, dropping: .framing)
        buffer.append("Connection: Upgrade\r\n")
        var upgrades = LineIterator(head.fields, .upgrade)
        while let upgrade = upgrades.next() { buffer.appendField("Upgrade", upgrade) }
        buffer.appendLineEnd()
        if let content = head.content { buffer.append(content) }
        let leader = leader
        // The slot of the origin's limit is free again: a tunnel is bounded by the client connections.
        end(.upgraded)
        if let leader { leader.fetch(self, upgradedTo: connection, head: buffer) } else { connection.closeTunnel() }
    }

    func exchange(_ exchange: Exchange, failedWith error: UpstreamError) {
        worker.notices.upstreamFailed(error, of: request)
        // Not one whose 304 was taken, while another exchange asks.
        guard exchange === self.exchange else { return }
        switch state {
        case .asking:
            originFailed(error)
        case .streaming:
            // What broke the rules of its syntax is not to be trusted at all.
            end(.truncated(error.failure, keepsPart: !error.isMalformed))
        case .new, .over:
            break
        }
    }

    func exchangeTakesContent(_ exchange: Exchange) { leader?.fetchTakesContent(self) }
}

extension UpstreamError {
    /// What this means to a stored response that might stand in (RFC 9111 §4.2.4).
    var originFailure: OriginFailure {
        switch failure {
        case .connectTimeout, .headTimeout, .bodyTimeout: .timeout
        case .unavailable: .overloaded
        case .resolve, .connect, .send, .closed: .unreachable
        case .head, .body: .malformed
        }
    }
}
