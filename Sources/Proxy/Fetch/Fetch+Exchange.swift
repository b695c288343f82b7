import Bytes
import Coalescing
import HTTPSemantics
import Routing
import Storage
import Telemetry
import Upstream

/// The events of the exchange with the origin.
extension Fetch: ExchangeHandler {
    func exchange(_ exchange: Exchange, interim head: borrowing ReceivedHead) {
        progress.last = context.now
        if head.head.status == .continue, !awaitsContinue { return }
        let interim = head.interim()
        leader?.send(interim: interim)
        // An interim response that sets a cookie, or answers a request with credentials or fields of its own, goes to
        // the leader only: which clients may share the final response is not yet known.
        guard plan.isShared, !head.fields.contains(.setCookie), !request.isPersonal else { return }
        hasSharedInterims = true
        waiter?.received(interim: interim)
        operation?.elsewhere.append(interim)
    }

    func exchange(_ exchange: Exchange, received head: borrowing ReceivedHead) { received(head) }

    /// The head of the response is there, from the origin or from the shared tier.
    @inline(__always) func received(_ head: borrowing ReceivedHead) {
        guard state == .asking else { return }
        progress.last = context.now
        perform(HeadHandling(of: self).action(on: head))
        tier?.leader?.headCame(head, to: self)
        // The content that is here cannot break off.
        if head.content == nil, let fetched { resumption = Resumption(of: self, fetched, head) }
    }

    func exchange(_ exchange: Exchange, upgradedTo connection: UpstreamConnection, head: borrowing ReceivedHead) {
        let (switching, leader) = (context.switching(by: head, for: request, from: arrival), leader)
        // Frees the slot of the origin's limit: the number of client connections bounds the number of tunnels.
        end(.upgraded)
        if let leader { leader.fetchUpgraded(to: connection, head: switching) } else { connection.closeTunnel() }
    }

    func exchange(_ exchange: Exchange, failedWith error: UpstreamError) {
        context.notices.upstreamFailed(error, of: request)
        // Ignore an exchange whose 304 was taken, while another exchange asks.
        guard exchange === self.exchange else { return }
        failed(with: error)
    }

    /// No response comes, or no more of it.
    func failed(with error: UpstreamError) {
        switch state {
        case .asking, .awaitingMemory:
            if let action = HeadHandling(of: self).standIn(on: error.originFailure, status: nil) {
                return perform(action)
            }
            var error = error
            error.duration = UInt64(max(0, context.now - sentAt.monotonic))
            end(.failed(error))
        case .streaming, .resuming:
            // A response that broke the rules of its syntax is not trusted at all, nor is one that cannot be the rest.
            let isTrusted = !error.isMalformed && error.failure != .head
            if isTrusted, resumption?.begin(isUnsent: error.isBeforeRequest) == true { return }
            end(.truncated(.origin(error.failure, error.brokenRule), keepsPart: isTrusted))
        case .new, .over: break
        }
    }

    func exchangeTakesContent(_ exchange: Exchange) { leader?.fetchTakesContent() }

    func exchange(_ exchange: Exchange, received bytes: Span<UInt8>) -> BodyIntake {
        tier?.leader?.pass(bytes, to: self) ?? received(bytes)
    }

    /// The next bytes of the content.
    @inline(__always) func received(_ bytes: Span<UInt8>) -> BodyIntake {
        progress.last = context.now
        if state == .awaitingMemory, let fetched, !handOutIfInMemory(fetched) {
            return waitForMemory() ? .refused(after: 0) : .taken
        }
        // A packed response has all of its body already.
        guard state == .streaming, let fetched, let body = fetched.response.looseBody else { return .taken }
        // A reader on another loop may tell its client of the end before this loop goes on.
        if arriving.isCompleted(by: bytes.count) { fetched.noteEnd(at: context.moment) }
        return take(bytes, into: body, of: fetched.response)
    }

    func exchange(_ exchange: Exchange, endedWith trailers: ByteSlice?) {
        if exchange === self.exchange { ended(with: trailers) }
    }

    /// The content is complete.
    @inline(__always) func ended(with trailers: ByteSlice?) {
        guard let fetched else { return }
        // The response has no content.
        if state == .awaitingMemory { handOut(fetched) }
        guard state == .streaming else { return }
        fetched.noteEnd(at: context.moment)
        guard arriving.end(fetched.response, trailers, for: request, isHead: method == .head) else {
            // A response with less or more content than announced never gets a clean end.
            return end(.truncated(.origin(.body, nil), keepsPart: false))
        }
        // Store the response before its operation leaves the in-flight table: every look-up must find the response in
        // one of them.
        ResponseStoring(of: self)?.store(fetched, waiterCount: operation?.waiterCount ?? 0)
        tier?.leader?.contentEnded(trailers)
        end(.complete)
    }

    // MARK: The head

    private func perform(_ action: HeadHandling.Action) {
        switch action {
        case .ask(let conditions):
            ask(conditions)
        case .answer(let fetched):
            deliver(fetched)
            tier?.leader?.validated(fetched)
            end(fetched.source == .validated ? .complete : .stoodIn)
        case .answerLeader(let fetched):
            leader?.fetchAnswers(fetched)
            // The exchange of the 304 ends by itself.
            (leader, exchange) = (nil, nil)
            guard let operation, !operation.hasEnded, !operation.cancelIfUnattended() else { return }
            ask(.none)
        case .release:
            end(.released)
        case .handOut(let fetched):
            self.fetched = fetched
            arriving = ArrivingBody(fetched.decision.keeping, length: fetched.decision.contentLength)
            allowSilence()
            if handOutIfInMemory(fetched) { return }
            enter(.awaitingMemory)
            waitForMemory()
            setContinues(withoutClients: Continuation.isAllowed(for: self))
        }
    }

    /// An origin of an event stream may be silent between two events.
    private func allowSilence() {
        if isIncremental, fetched?.decision.part == nil {
            exchange?.allowSilence(context.loopSettings.timeouts.tunnel)
        }
    }

    /// The rest of the body arrives from now on, by another exchange.
    /// - Parameter length: the length of the whole body.
    func goOn(toLength length: Int?) {
        enter(.streaming)
        arriving = arriving.expecting(length)
        fetched?.noteResumption()
        allowSilence()
    }

    /// Hands out the response whose head is there, if there is memory for the first piece of its content: no client
    /// gets a head whose content has to wait for memory that other bodies may never release. The response to an unsafe
    /// method is handed out in any case, since it tells the effect of the request.
    /// - Returns: false if there is no memory.
    func handOutIfInMemory(_ fetched: FetchedResponse) -> Bool {
        if let body = fetched.response.looseBody, method != .head {
            var begun = arriving
            let hasMemory = begun.begin(body, memory: context.shared, at: context.now)
            arriving = begun
            guard hasMemory || !method.isSafe else { return false }
        }
        handOut(fetched)
        return true
    }

    /// Gives the response to the waiters, and lets later requests find it. Its body arrives from now on.
    @inline(__always) // Called in two places, of which one is not rare.
    private func handOut(_ fetched: FetchedResponse) {
        enter(.streaming)
        // The whole content came with the head.
        if fetched.response.isPacked { fetched.noteEnd(at: context.moment) }
        if !plan.isShared {
            if !plan.isPass || arriving.willBeStored { Announcement(of: self).announceAlone(fetched) }
            deliver(fetched)
        } else if let operation {
            let (announcement, isWhole) = (Announcement(of: self), arriving.keeping.isWhole)
            operation.elsewhere.endInterims()
            let hasAlias = announcement.announce(fetched, by: operation, keepsWhole: isWhole)
            deliver(fetched)
            announcement.closeIfInvalidated(fetched.response, operation)
            if hasAlias { placement.isFound = true }
            if !isWhole { operation.pinBeginning(of: fetched, until: context.shared.callbacks) }
        }
        setContinues(withoutClients: Continuation.isAllowed(for: self))
    }

    // MARK: The body

    private func take(_ bytes: Span<UInt8>, into body: GrowingBody, of response: StoredResponse) -> BodyIntake {
        var next = arriving
        let intake = next.take(bytes, into: body, of: response, memory: context.shared, at: context.now)
        arriving = next
        switch intake {
        case .done(let reply):
            return reply
        case .tooLong:
            // Which of the bytes are right is unknown.
            end(.truncated(.origin(.body, nil), keepsPart: false))
            return .taken
        case .tooLarge:
            keepWindow(of: response, body, because: .tooLarge)
            return .taken
        case .noRoom:
            keepWindow(of: response, body, because: .noRoom)
            // The last client may have left.
            return state == .streaming ? take(bytes, into: body, of: response) : .taken
        case .noMemory(let taken):
            keepWindow(of: response, body, because: .noRoom)
            return state == .streaming && waitForMemory() ? .refused(after: taken) : .taken
        }
    }

    /// The body is too large, or there is no memory: from now on only the bytes that its readers still need are kept.
    private func keepWindow(of response: StoredResponse, _ body: GrowingBody, because reason: StoreOutcome) {
        if arriving.willBeStored {
            context.recorder.count(reason)
            // The next response is not announced as stored. Set only after the head was sent: this response was.
            if reason == .tooLarge, method == .get { Announcement(of: self).remember(.outgrown) }
        }
        operation?.close()
        if arriving.keeping.isWhole, let fetched {
            operation?.pinBeginning(of: fetched, until: context.shared.callbacks)
        }
        arriving = arriving.keepingWindow(body, of: context.shared.streamingWindow)
        setContinues(withoutClients: false)
    }

    func bodyHasRoom() {
        guard state.isHandedOut else { return }
        arriving = arriving.resumed()
        progress.last = context.now
        exchange?.resume()
        tier?.resume()
    }
}
