import Bytes
import HTTPSemantics
import Libevent
import Storage
import Telemetry

/// Taking requests out of the buffer: answered as plain hits, begun as transactions, or refused.
extension ClientConnection {
    /// What became of the head at the front of the buffer.
    private enum Step {
        case incomplete
        case malformed(MessageSyntaxError)
        case answered(headLength: Int)
        /// For a transaction, in the same words as the last to join the worker's crowd: nothing is parsed or looked up
        /// again.
        case alike(SharedHead)
        /// For a transaction; with its route, where that is known and the worker has its key.
        case unanswered(RequestHead, HeadBlock, on: Route?)
    }

    /// Takes requests out of the buffer until it needs more bytes or one must be waited for.
    /// - Parameter context: the connection's own. It stays here meanwhile, also when the connection ends, and goes back
    ///   when nothing is left in it.
    func serve(_ context: ReadContext) {
        guard !input.isBeingTaken else { return }
        input.beginTaking()
        takeRequests(context)
        input.endTaking()
        switch phase {
        case .reading where input.hasEnded: end()
        case .reading, .serving, .lingering: if context.buffer.isEmpty { giveBackContext() }
        case .tunnelling, .closed: giveBackContext()
        }
    }

    @inline(__always)
    private func takeRequests(_ context: ReadContext) {
        let buffer = context.buffer
        var hasAnswered = false
        while phase == .reading, !buffer.isEmpty {
            let step = takeStep(context)
            if case .answered(let length) = step {
                hasAnswered = true
                input.headTaken()
                buffer.consume(length)
                continue
            }
            if hasAnswered { worker.sendHits(of: self) }
            // Otherwise the head is parsed again once the hits before it are sent.
            guard phase == .reading else { return }
            switch consume step {
            case .answered:
                break
            case .incomplete:
                return due(.head, worker.timeouts.head, onlyIfNot: .head)
            case .malformed(let error):
                return refuse(error)
            case .alike(let head):
                input.headTaken()
                buffer.consume(head.value.head.length)
                beginServing()
                beginTransaction(ClientRequest(sharing: head, arrived: worker.moment, from: sender))
            case .unanswered(let head, let fields, let route):
                input.headTaken()
                buffer.consume(head.length)
                beginTransaction(head, fields, on: route)
                if phase == .serving { readContent() }
            }
        }
    }

    @inline(__always)
    private func takeStep(_ context: ReadContext) -> Step {
        let buffer = context.buffer
        // Not if something learnt about queries since might give the same words another key.
        if let crowd = worker.crowd, !isBound, let latest = crowd.latestHead, latest.value.isBeginning(of: buffer.span),
            worker.variations.isEmpty,
            latest.value.isForSameURL(isFromTrustedProxy: isTrustedProxy && worker.loopSettings.trustsProxies)
        {
            context.parser.use { $0.reset() }
            output.keepAlive(mayPersist(behind: latest.value.head))
            return .alike(latest)
        }
        return context.parser.use { parser in
            let progress: HeadProgress
            do throws(MessageSyntaxError) {
                progress = try parser.parse(buffer.span)
            } catch {
                // It may be parsed again, after the held hits are sent.
                parser.reset()
                return .malformed(error)
            }
            guard case .complete(let length) = progress else { return .incomplete }
            defer { parser.reset() }
            output.keepAlive(mayPersist(behind: parser.head))
            let known: Route?
            switch worker.hitPath.answer(parser.head, parser.view(in: buffer.span), to: self) {
            case .answered: return .answered(headLength: length)
            case .nothingFresh(let route): known = route
            case .undecided: known = nil
            }
            return .unanswered(
                parser.head, HeadBlock(copying: parser.view(in: buffer.span.extracting(0..<length))), on: known)
        }
    }

    /// Whether another request may come behind one with this head.
    @inline(__always)
    private func mayPersist(behind head: RequestHead) -> Bool {
        head.keepsAlive && worker.keepsConnections && input.requestCount + 1 < worker.mostRequests
    }

    /// - Parameter route: `nil` where it is still to be found.
    private func beginTransaction(_ head: RequestHead, _ fields: HeadBlock, on route: Route?) {
        beginServing()
        let request: ClientRequest
        do throws(OwnAnswer) {
            switch try worker.admit(head, fields, on: route, from: sender) {
            case .admitted(let admitted):
                request = admitted
            case .answered(let answer, let route):
                // Its content, if it has any, is not read.
                if head.framing != .none { output.beLast() }
                return respondWithoutTransaction(answer, .synthetic, to: head, fields, on: route)
            }
        } catch {
            // RFC 9931: what comes behind a CONNECT was perhaps meant for the other end of a tunnel.
            if head.framing != .none || head.method == .connect { output.beLast() }
            return respondWithoutTransaction(error, .refused, to: head, fields)
        }
        guard request.hasContent else { return beginTransaction(request) }
        input.awaitContent(ContentReader(head, limit: worker.settings.clients.maxBodySize))
        let transaction = Transaction(request, client: self, worker: worker)
        begin(transaction)
        transaction.beginWithContent()
    }

    private func beginServing() {
        enter(.serving)
        // From here on reading may be stopped, and begun again.
        watch()
        output.begin()
        input.begins(at: loop.now)
        notDue()
        // The client may have shut its sending side behind this request, while the one before was served.
        awaitResponse()
    }

    private func beginTransaction(_ request: consuming ClientRequest) {
        let transaction = Transaction(request, client: self, worker: worker)
        begin(transaction)
        transaction.look()
    }

    // MARK: Answers of our own

    func refuse(_ error: MessageSyntaxError) {
        worker.metrics.add(.malformedRequests)
        worker.notices.malformed(error, from: peer)
        answerInstead(OwnAnswer(error))
    }

    /// An answer of our own in the place of the transaction under way, or to what never became one; the last on this
    /// connection.
    func answerInstead(_ answer: OwnAnswer) {
        output.beLast()
        // The one that is noted is of the response before.
        if phase == .reading { output.begin() }
        enter(.serving)
        input.contentEnded()
        let request = transaction?.request
        // Of a head that is malformed or not complete.
        var method: Method?
        if request == nil, let buffer = input.context?.buffer, RequestHeadParser.isHEAD(buffer.span) { method = .head }
        endTransaction()
        respondWithoutTransaction(answer, .refused, to: request?.head, request?.fields, method: method)
    }

    /// An answer of our own to what never became a transaction.
    /// - Parameters:
    ///   - head: `nil` where it is malformed, and `method` then of what it is to.
    ///   - route: `nil` for a refusal.
    private func respondWithoutTransaction(
        _ answer: OwnAnswer, _ verdict: Verdict, to head: RequestHead?, _ fields: HeadBlock?, on route: Route? = nil,
        method: Method? = nil
    ) {
        let buffer = ByteBuffer(capacity: 512)
        let content = worker.loopSettings.errors.write(
            answer, to: head?.method ?? method, head?.version ?? .http11, nil, upstream: nil,
            persists: output.keepsAlive, date: worker.loop.wallClockSeconds, into: buffer)
        output.logWhenOut(AnsweredRequest(answer.status, verdict, route?.upstreamMetrics, head, fields))
        send(buffer, content, .sized, passesTrailers: false)
    }
}
