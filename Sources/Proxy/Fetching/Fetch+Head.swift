import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Telemetry
import Upstream

/// Handles the head of the origin's response, which confirms a stored response, brings a part or is a response of its
/// own; or the origin's failure. From `asking` to `streaming`, or to the end.
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
        // An interim response that sets a cookie, or answers a request with credentials or fields of its own, goes to
        // the leader only: which clients may share the final response is not yet known.
        if plan.isShared, !head.fields.contains(.setCookie), !request.hasAuthorization, !request.isPeculiar {
            operation?.interims.append(interim)
        }
    }

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
        var facts = ResponseFacts(
            status: status, fields: head.fields, requestTime: sentAt, responseTime: now, policy: policy)
        facts.keep(toSession: request.isOfSession)
        if method == .head {
            revalidation.freshen(fromHead: head.fields, facts, contentLength: head.head.contentLength)
        }
        let decision = settle(head, facts, policy)
        // An origin of an event stream may be silent between two events.
        if facts.contains(.isIncremental) { exchange.allowSilence(worker.timeouts.tunnel) }
        if method == .get, plan.stored != nil || plan.parts != nil {
            revalidation.forbidStaleUse(
                after: facts, head.fields, willBeStored: decision.willBeStored, staysHere: !isElsewhere)
        }
        if status == .ok, isWholeInVain(decision), releaseAll(because: decision.sharing) { return }
        let response = makeResponse(head, facts, policy, decision)
        let forLeader =
            facts.contains(.excludesFields) ? response.withHead(keptHead(head, facts, policy, isForLeader: true)) : nil
        handOutOnceInMemory(makeFetchedResponse(response, forLeader: forLeader, from: head, decision))
    }

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
        // The slot of the origin's limit is free again: the number of tunnels is bounded by that of the client
        // connections.
        end(.upgraded)
        if let leader { leader.fetch(self, upgradedTo: connection, head: buffer) } else { connection.closeTunnel() }
    }

    func exchange(_ exchange: Exchange, failedWith error: UpstreamError) {
        worker.notices.upstreamFailed(error, of: request)
        // Ignore an exchange whose 304 was taken, while another exchange asks.
        guard exchange === self.exchange else { return }
        switch state {
        case .asking, .awaitingMemory:
            originFailed(error)
        case .streaming:
            // A response that broke the rules of its syntax is not trusted at all.
            end(.truncated(.origin(error.failure, error.brokenRule), keepsPart: !error.isMalformed))
        case .new, .over:
            break
        }
    }

    func exchangeTakesContent(_ exchange: Exchange) { leader?.fetchTakesContent(self) }

    // MARK: A stored response is the answer

    /// The rules for applying the origin's answer to the stored responses.
    var revalidation: Revalidation {
        Revalidation(
            request: request, plan: plan, requestTime: sentAt, generation: placement.generation,
            hasPassCookie: hasPassCookieByNow, store: worker.shared.store, recorder: worker.recorder)
    }

    /// Takes a 304 to our own conditions.
    private func receivedNotModified(_ head: borrowing ReceivedHead, at now: Moment) {
        let requestFields = request.fields
        if conditions == .storedAndClients, head.fields.entityTag == nil {
            // The 304 names none of the tags sent: ask again without the client's tags, so that the 304 is certain to
            // be about a stored response.
            ask(.stored)
        } else if let freshened = revalidation.freshened(
            byNotModified: head.fields, responseTime: now, clientIsAsked: conditions == .storedAndClients)
        {
            // The new fields may change the outcome of the leader's own conditions, and the leader may want more than
            // the stored parts, or the whole: another look-up, which finds the updated response, asks for that.
            guard (freshened.leaderResponse ?? freshened.response).hasEverything(wantedBy: request) else {
                return end(.released)
            }
            answer(
                with: freshened.response, forLeader: freshened.leaderResponse, source: .validated,
                status: head.head.status, isStored: freshened.isStored, isForOthers: freshened.isForOthers)
        } else if conditions == .storedAndClients, ClientConditions.isConfirmed(requestFields.view, by: head.fields) {
            answerLeader(with: head, at: now)
        } else {
            // The 304 selects no stored response (RFC 9111 §4.3.4): ask for the whole.
            ask(.none)
        }
    }

    /// RFC 9111 §4.3.2: only the client that led has the representation that the origin would send. It gets the 304.
    /// The joined requests go on waiting for the whole, which is asked for at once, without conditions, and once
    /// however many they are.
    private func answerLeader(with head: borrowing ReceivedHead, at now: Moment) {
        guard let operation else { return }
        let policy = request.route.policy
        let facts = ResponseFacts(
            status: head.head.status, fields: head.fields, requestTime: sentAt, responseTime: now, policy: policy)
        let decision = HeadDecision.notModifiedForLeader
        let response = StoredResponse(
            head: keptHead(head, facts, policy, isForLeader: true), facts: facts, body: GrowingBody(lending: .empty))
        let fetched = makeFetchedResponse(response, from: head, decision)
        fetched.noteEnd(at: now)
        leader?.fetch(self, answers: fetched)
        leaderIsAnswered()
        if operation.hasEnded || operation.cancelIfUnattended() { return }
        ask(.none)
    }

    private func originFailed(_ error: UpstreamError) {
        if let stale = usableStale(on: error.originFailure) {
            return answer(with: stale, source: .staleOnError(error.originFailure), status: nil)
        }
        var error = error
        error.duration = UInt64(max(0, worker.now - sentAt.monotonic))
        end(.failed(error))
    }

    private func usableStale(on failure: OriginFailure) -> StoredResponse? {
        plan.hasStandIn ? worker.standIn(for: request, on: failure) : nil
    }

    /// Ends with a response that is already complete.
    /// - Parameters:
    ///   - leaderResponse: `nil` where the leader gets the same response as the others.
    ///   - isStored: whether the response was put into the store as it is.
    ///   - isForOthers: whether the waiters beside the leader might have the response.
    private func answer(
        with stored: StoredResponse, forLeader leaderResponse: StoredResponse? = nil, source: FetchedResponse.Source,
        status: Status?, isStored: Bool = false, isForOthers: Bool = true
    ) {
        let storedHead = stored.head
        let asked = request.facts(asking: method, hasPassCookie: hasPassCookieByNow)
        let sharing =
            isForOthers
            ? stored.facts.sharing(answering: asked, policy: request.route.policy)
            : .nobody(.prohibited(.authorization))
        // RFC 9111 §5.2.2.4: after `no-cache`, each request needs a validation of its own; also, the 304 may have made
        // the response private.
        let forWaiters: Sharing = if case .nobody = sharing, source == .validated { sharing } else { .waitersOnly }
        if let operation {
            if source == .validated {
                if stored.facts.contains(.separatesRequests), tellsOthersApart(operation) { rememberSeparation() }
                // The next crowd does not wait for a response that only its leader may have.
                rememberIfUnshareable(stored, sharing)
            }
            // After the markers are set, as in `announce`.
            operation.close()
        }
        var circumstances = circumstances(of: stored)
        circumstances.otherKey = Placement.staysUnderItsKey(stored, for: request) ? nil : request.sentKey
        circumstances.search = Placement.stated(storedHead.view)
        let fetched = FetchedResponse(
            stored, leaderResponse: leaderResponse, source: source, sharing: forWaiters, originStatus: status,
            length: stored.bodyLength,
            willBeStored: isStored, circumstances)
        fetched.noteEnd(at: worker.moment)
        deliver(fetched)
        end(source == .validated ? .complete : .stoodIn)
    }

    // MARK: A part

    /// Takes the head of a response to a request for a range.
    /// - Returns: false if the response is to be treated like any other.
    private func receivedPart(_ head: borrowing ReceivedHead, of range: ByteRangeSpec, at now: Moment) -> Bool {
        let length = head.head.framing.announcedLength
        guard let part = ReceivedPart(head.fields, status: head.head.status, contentLength: length, asked: range) else {
            return rejectPart(head, at: now)
        }
        let partial = PartialResponse(
            part, head.fields, with: plan.parts, for: request, requestTime: sentAt, responseTime: now)
        // Before `settle`: a part that is not used teaches no query rules.
        guard partial.hasEverythingWanted else { return rejectPart(head, at: now) }
        let decision = settle(head, partial.facts, request.route.policy, part: part)
        let response = partial.response(
            makeBody(expecting: part.range.count, keeping: decision.keeping), budget: worker.shared.budget)
        if !partial.leavesParts { revalidation.dropParts(after: partial.facts) }
        partKeeper = partial.keeper
        let forLeader = partial.headForLeader.map { response.withHead($0) }
        handOutOnceInMemory(makeFetchedResponse(response, forLeader: forLeader, from: head, decision))
        return true
    }

    /// The response is not a part that can be used.
    /// - Returns: whether the response is dealt with; false if the leader gets it as it is.
    private func rejectPart(_ head: borrowing ReceivedHead, at now: Moment) -> Bool {
        let status = head.head.status
        let facts = ResponseFacts(
            status: status, fields: head.fields, requestTime: sentAt, responseTime: now, policy: request.route.policy)
        let speaksForOthers = facts.speaksForOthers(than: request)
        guard let parts = plan.parts else {
            // Later requests fetch alone: an origin that ignores ranges, or sends parts that cannot be kept, will do so
            // again.
            let size = StoredResponse.mostObjectSize(
                head.fields, content: head.head.framing.announcedLength ?? 0, partOf: nil)
            let isTooLarge = status == .ok && size > worker.storage.objectLimit
            if status == .partialContent || isTooLarge || (status == .rangeNotSatisfiable && leaderWasReleased) {
                remember(speaksForOthers ? .part : .prohibited(.authorization))
            }
            return false
        }
        // An encoded whole response says nothing of unencoded parts, which other clients may accept.
        let isOfOtherCoding = status == .ok && !request.varyRule(head.fields, facts).hasSameCodings(as: parts.varyRule)
        if status == .ok && !isOfOtherCoding || status == .partialContent || status == .rangeNotSatisfiable {
            revalidation.dropParts(after: facts)
        }
        guard status == .partialContent || status == .rangeNotSatisfiable else { return false }
        // The response must not be combined with the stored parts, and is not all that the leader wants: all requests
        // look up again. They find no stored parts, or pass by the parts that stay for others.
        if !speaksForOthers { remember(.prohibited(.authorization)) }
        end(.released)
        return true
    }
}

extension UpstreamError {
    /// The kind of failure that decides whether a stored response may stand in (RFC 9111 §4.2.4).
    var originFailure: OriginFailure {
        switch failure {
        case .connectTimeout, .sendTimeout, .headTimeout, .bodyTimeout: .timeout
        case .unavailable: .overloaded
        case .resolve, .connect, .send, .closed: .unreachable
        case .head, .headTooLarge, .body: .malformed
        }
    }
}
