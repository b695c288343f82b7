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
        case answered(headLength: Int)
        /// The head needs a transaction and is byte for byte the head of the last request that joined the loop's latest
        /// group (`LatestGroup`): it is not parsed or looked up again.
        case alike(ClientRequest)
        /// The head needs a transaction. The route is set if it is known and `LoopContext.keys` holds the request's
        /// key.
        case unanswered(RequestHead, HeadBlock, on: Route?)
    }

    /// Parses and answers requests from the buffer until the next head is incomplete or a request needs a transaction.
    /// - Parameters:
    ///   - input: the connection's own. The connection keeps it during the call, also if the connection ends, and
    ///     returns it to `clients` once its buffer is empty.
    ///   - waits: whether small hits may stay in the batch's output, whose last bytes are then this client's.
    func serve(_ input: ReadContext, waits: Bool = false) {
        guard !isTaking else { return }
        beginTaking()
        takeRequests(input, waits: waits)
        endTaking()
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
            if case .answered(let length) = step {
                noteRequest()
                buffer.consume(length)
                continue
            }
            if clients.pendingCount > start { sendPending(from: start) }
            // The kernel has not taken all hits: this head is parsed again once it has.
            guard phase == .reading else { return }
            switch consume step {
            case .answered:
                break
            case .incomplete:
                return due(.head, clients.timeouts.head, onlyIfNot: .head)
            case .malformed(let error):
                return refuse(error)
            case .alike(let request):
                noteRequest()
                buffer.consume(request.head.length)
                beginServing()
                begin(request).look()
            case .unanswered(let head, let fields, let route):
                noteRequest()
                buffer.consume(head.length)
                beginTransaction(head, fields, on: route)
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
            latest.isForSameURL(isFromTrustedProxy: isTrustedProxy && context.loopSettings.trustsProxies)
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
            defer { parser.reset() }
            let mayPersist = mayPersist(behind: parser.head)
            keepsAlive = mayPersist
            let client = HitPath.Client(
                address: peerText, isTrustedProxy: isTrustedProxy, persists: mayPersist, began: requestBegan,
                start: start, waits: waits)
            let known: Route?
            switch clients.hitPath.answer(parser.head, parser.view(in: buffer.span), of: client) {
            case .pending:
                noteAnswered()
                return .answered(headLength: length)
            case .ready(let hit):
                send(hit, from: start, to: parser.head, parser.view(in: buffer.span))
                return .answered(headLength: length)
            case .needsTransaction(let route): known = route
            case .undecided: known = nil
            }
            return .unanswered(
                parser.head, HeadBlock(copying: parser.view(in: buffer.span.extracting(0..<length))), on: known)
        }
    }

    /// Whether the connection persists after a request with this head.
    @inline(__always)
    private func mayPersist(behind head: RequestHead) -> Bool {
        head.keepsAlive && clients.keepsConnections && requestCount + 1 < clients.mostRequests
    }

    /// - Parameter route: `nil` if the route was not looked up yet.
    private func beginTransaction(_ head: RequestHead, _ fields: HeadBlock, on route: Route?) {
        beginServing()
        let request: ClientRequest
        do throws(SyntheticResponse) {
            switch try context.admit(
                head, fields, on: route, isFromTrustedProxy: isTrustedProxy, isBound: isBound)
            {
            case .admitted(let admitted):
                request = admitted
            case .answered(let answer, let route):
                // The request's content, if any, is not read, so the connection cannot persist.
                if head.framing != .none { keepsAlive = false }
                return respondWithoutTransaction(answer, .synthetic, to: head, fields, on: route)
            }
        } catch {
            // RFC 9931: the bytes after a refused CONNECT may have been meant for the other end of a tunnel.
            if head.framing != .none || head.method == .connect { keepsAlive = false }
            return respondWithoutTransaction(error, .refused, to: head, fields)
        }
        guard request.hasContent else { return begin(request).look() }
        content = ContentReader(head, limit: context.settings.clients.maxBodySize)
        begin(request).beginWithContent()
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
        context.metrics.add(.malformedRequests)
        context.notices.malformed(error, from: peer)
        answerInstead(SyntheticResponse(error))
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
        respondWithoutTransaction(answer, .refused, to: request?.head, request?.fields, method: method)
    }

    /// Sends a response made by this proxy to a request without a transaction.
    /// - Parameters:
    ///   - head: the request's head; `nil` if it is malformed or incomplete. Then `method` is the request's method, if
    ///     known.
    ///   - route: `nil` for a refusal.
    private func respondWithoutTransaction(
        _ answer: SyntheticResponse, _ verdict: Verdict, to head: RequestHead?, _ fields: HeadBlock?,
        on route: Route? = nil,
        method: Method? = nil
    ) {
        let buffer = ByteBuffer(capacity: 512)
        let content = context.loopSettings.errors.write(
            answer, to: head?.method ?? method, head?.version ?? .http11, nil, upstream: nil,
            persists: keepsAlive, date: context.loop.wallClockSeconds, into: buffer)
        answered = AnsweredRequest(answer.status, verdict, route?.upstreamMetrics, head, fields)
        send(buffer, content, .sized, passesTrailers: false)
    }
}
