import Bytes
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry

/// Parsing requests from the buffer: each is answered as a plain hit, starts a transaction, or is refused.
extension HTTP1Connection {
    /// The result of parsing and looking up the head at the front of the buffer.
    private enum Step {
        case incomplete
        case malformed(MessageSyntaxError)
        /// It is a plain hit, and is removed from the buffer.
        case answered
        /// The head needs a transaction and is byte for byte the head of the last request that joined the loop's latest
        /// group (`LatestGroup`): it is not parsed or looked up again.
        case alike(ClientRequest)
        /// The head, which the parser still holds, needs a transaction. The route is set if it is known and
        /// `LoopContext.keys` holds the request's key.
        case unanswered(on: Route?)
    }

    /// Parses and answers requests from the buffer until the next head is incomplete or a request needs a transaction.
    /// - Parameters:
    ///   - input: the connection's own. The connection keeps it during the call, also if the connection ends, and
    ///     returns it to `clients` once its buffer is empty.
    ///   - waits: whether small hits may stay in the batch's output, whose last bytes are then this client's.
    func serve(_ input: ReadContext, waits: Bool = false) {
        guard !isTaking else { return }
        isTaking = true
        takeRequests(input, waits: waits)
        isTaking = false
        switch phase {
        case .reading where hasEnded: end()
        case .reading, .serving, .lingering: if input.buffer.isEmpty { giveBackContext() }
        case .tunnelling, .closed: giveBackContext()
        }
    }

    @inline(__always)
    private func takeRequests(_ input: ReadContext, waits: Bool) {
        let buffer = input.buffer
        // The client's pending hits are the output of the batch from here on.
        let start = clients.pendingCount
        while phase == .reading, !buffer.isEmpty {
            let step = takeStep(input, from: start, waits: waits)
            if case .answered = step { continue }
            if clients.pendingCount > start { sendPending(from: start) }
            // The kernel has not taken all hits: this head is parsed again once it has.
            guard phase == .reading else { return input.parser.use { $0.reset() } }
            switch consume step {
            case .answered:
                break
            case .incomplete:
                return due(.head, clients.timeouts.head, onlyIfNot: .head)
            case .malformed(let error):
                return refuse(error)
            case .alike(let request):
                requestCount += 1
                buffer.consume(request.head.length)
                beginServing()
                answer(request)
            case .unanswered(let route):
                requestCount += 1
                beginTransaction(input, on: route)
                if phase == .serving { readContent() }
            }
        }
    }

    @inline(__always)
    private func takeStep(_ input: ReadContext, from start: Int, waits: Bool) -> Step {
        let buffer = input.buffer
        // Only while no path has a `No-Vary-Search`: a variation learnt since could give an identical head another key.
        if let group = clients.latestGroup.group, !isBound, let latest = group.latest,
            latest.isBeginning(of: buffer.span),
            context.variations.isEmpty,
            latest.isForSameURL(
                isFromTrustedProxy: isTrustedProxy && context.loopSettings.trustsProxies, isSecure: isSecure),
            security?.asksForCertificates != true
        {
            input.parser.use { $0.reset() }
            keepsAlive = mayPersist(behind: latest.head)
            return .alike(latest)
        }
        return input.parser.use { parser in
            let progress: HeadProgress
            do throws(MessageSyntaxError) {
                progress = try parser.parse(buffer.span)
            } catch {
                // The head may be parsed again after the pending hits are sent.
                parser.reset()
                return .malformed(error)
            }
            guard case .complete(let length) = progress else { return .incomplete }
            let mayPersist = mayPersist(behind: parser.head)
            keepsAlive = mayPersist
            let sending = HitPath.Sending(
                persists: mayPersist, start: start, waits: waits, hasMore: buffer.count > length)
            switch clients.hitPath.answer(parser.head, parser.view(in: buffer.span), of: self, sending) {
            case .pending:
                requestBegan = 0
            case .ready(let hit):
                send(hit, from: start, to: parser.head, parser.view(in: buffer.span))
            case .needsTransaction(let route):
                return .unanswered(on: route)
            }
            parser.reset()
            requestCount += 1
            buffer.consume(length)
            return .answered
        }
    }

    /// Whether the connection persists after a request with this head.
    @inline(__always)
    private func mayPersist(behind head: RequestHead) -> Bool {
        head.keepsAlive && clients.keepsConnections && requestCount + 1 < clients.mostRequests
    }

    /// Begins the transaction of the request that was parsed, and removes its head from the buffer.
    /// - Parameter route: `nil` if the route was not looked up yet.
    private func beginTransaction(_ input: ReadContext, on route: Route?) {
        let buffer = input.buffer
        let (head, fields) = input.parser.use { parser in
            defer { parser.reset() }
            let bytes = buffer.span.extracting(0..<parser.head.length)
            return (parser.head, HeadBlock(copying: parser.view(in: bytes)))
        }
        buffer.consume(head.length)
        beginServing()
        if clients.answersChallenges || head.method == .other && PurgeMethod.isMethod(of: head, fields.view),
            LaterAnswer.begin(head, fields, for: self)
        {
            return
        }
        do throws(SyntheticResponse) {
            let request = try context.admit(
                head, fields, on: route, from: peer, isFromTrustedProxy: isTrustedProxy, over: security,
                isBound: isBound)
            if request.hasContent { content = ContentReader(head, limit: context.settings.clients.maxBodySize) }
            answer(request)
        } catch {
            // The request's content, if any, is not read, so the connection cannot persist. RFC 9931: the bytes after a
            // refused CONNECT may have been meant for the other end of a tunnel.
            if head.framing != .none || head.method == .connect { keepsAlive = false }
            answerItself(error, to: head, fields)
        }
    }

    private func beginServing() {
        enter(.serving)
        // From here on reading may be stopped and resumed, so the loop must watch the socket.
        watch()
        firstByteSent = 0
        noteBegan()
        notDue()
        // The client may have shut its sending side after this request, while the previous request was served.
        awaitResponse()
    }

    // MARK: Responses made by this proxy

    func refuse(_ error: MessageSyntaxError) {
        if requestCount == 0, security == nil, mayBecomeHTTP2, let input {
            let buffer = input.buffer
            let preface = HTTP2Connection.preface
            let common = min(buffer.count, preface.count)
            if buffer.span.extracting(0..<common).isEqual(to: preface.span.extracting(0..<common)) {
                if common == preface.count { return clients.speaksHTTP2(self, buffer) }
                // The rest of the preface has not arrived.
                return due(.head, clients.timeouts.head, onlyIfNot: .head)
            }
        }
        context.metrics.add(.malformedRequests)
        // A client that has sent a request, or has had a handshake, speaks HTTP all the same.
        if error.reason == .tlsHello, requestCount == 0, security == nil { return refuseHello() }
        context.notices.malformed(error, from: peer)
        answerInstead(SyntheticResponse(error))
    }

    /// Answers a client that speaks TLS where there is none.
    private func refuseHello() {
        context.notices.tlsHello(from: peer)
        keepsAlive = false
        firstByteSent = 0
        enter(.serving)
        answered = AnsweredRequest(.badRequest, .refused, nil, nil, nil)
        send(.tlsAlert(), .one(.none), .sized, passesTrailers: false)
    }

    /// Sends a response made by this proxy in place of the current transaction, or to a request without a transaction.
    /// The connection closes after it.
    func answerInstead(_ answer: SyntheticResponse) {
        keepsAlive = false
        // `firstByteSent` still holds the time of the previous response.
        if phase == .reading { firstByteSent = 0 }
        enter(.serving)
        content = nil
        let request = transaction?.request
        // The method of a head that is malformed or incomplete.
        var method: Method?
        if request == nil, let buffer = input?.buffer, RequestHeadParser.isHEAD(buffer.span) { method = .head }
        endTransaction()
        answerItself(answer.on(request?.route), to: request?.head, request?.fields, method: method)
    }

    /// Sends `answer` without reading the request, and closes. The response fits into an empty socket buffer.
    func turnAway(with answer: SyntheticResponse) {
        enter(.serving)
        keepsAlive = false
        let buffer = ByteBuffer(capacity: 512)
        let content = context.write(answer, to: nil, .http11, persists: false, into: buffer)
        _ = applyRules(to: answer, to: nil, nil, in: buffer)
        send(buffer, content, .sized, passesTrailers: false)
    }

    /// Sends a response made by this proxy to a request without a transaction.
    /// - Parameters:
    ///   - head: the request's head; `nil` if it is malformed or incomplete. Then `method` is the request's method, if
    ///     known.
    func answerItself(
        _ answer: SyntheticResponse, to head: RequestHead?, _ fields: HeadBlock?, method: Method?
    ) {
        let buffer = ByteBuffer(capacity: 512)
        let content = context.write(
            answer, to: head?.method ?? method, head?.version ?? .http11, persists: keepsAlive, into: buffer)
        let madeID = applyRules(to: answer, to: head, fields, in: buffer)
        let upstreamMetrics = answer.verdict == .refused ? nil : answer.route?.upstreamMetrics
        answered = AnsweredRequest(answer.status, answer.verdict, upstreamMetrics, head, fields, madeID: madeID)
        send(buffer, content, .sized, passesTrailers: false)
    }

    /// - Returns: the identifier that was made for the request; `none` if none was.
    private func applyRules(
        to answer: SyntheticResponse, to head: RequestHead?, _ fields: HeadBlock?, in buffer: ByteBuffer
    ) -> RequestID {
        context.applyRules(
            toOwnHeadIn: buffer, status: answer.status, answer.verdict, on: answer.route, to: head, fields,
            peer: peerText, isFromTrustedProxy: isTrustedProxy, isSecure: isSecure, madeID: answer.madeID)
    }
}
