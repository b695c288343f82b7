import Bytes
import HTTP2
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry
import Upstream

/// One request and its response on a stream of an HTTP/2 connection.
///
/// ```
/// head ─a plain hit→ hit ─────────────────────────────┐
///   ├─admitted→ transaction ─its response→ delivery ──┼─its last byte is in a frame, or the stream is reset→ over
///   └─this proxy answers, perhaps later→ delivery ────┘
/// ```
///
/// This file has the request, the log and the end, the extension the request's content. The response is in the superclass.
final class HTTP2Exchange: HTTP2Response, TransactionClient, LaterClient {
    /// Its place among the connection's exchanges.
    var position: Int
    /// The content that arrives; `nil` once the request is complete, or the rest of it is not needed.
    var content: IncomingContent?
    /// Whether the client has sent all of the request.
    var isComplete = false
    private var isOver = false

    init(_ id: Int32, on connection: HTTP2Connection, at position: Int) {
        self.position = position
        super.init(id, on: connection)
    }

    // MARK: The request

    override func headIsComplete(_ head: Span<UInt8>, hasContent: Bool) {
        let clients = connection.clients
        // The text is not in the buffer, but its parser is free.
        guard let parser = connection.input?.parser else { return reset(.internalError) }
        defer { parser.use { $0.reset() } }
        var parsed: (head: RequestHead, fields: HeadBlock, route: Route?)?
        do throws(MessageSyntaxError) {
            let isAnswered = try parser.use { parser throws(MessageSyntaxError) -> Bool in
                guard case .complete = try parser.parse(head) else { return false }
                let (own, fields) = (parser.head.over(.http2), parser.view(in: head))
                switch clients.hitPath.answer(own, fields, of: connection, .framed) {
                case .ready(let hit):
                    send(hit, to: own, fields)
                    return true
                case .pending: return true
                case .needsTransaction(let route): parsed = (own, HeadBlock(copying: fields), route)
                }
                return false
            }
            if isAnswered { return }
        } catch {
            context.metrics.add(.malformedRequests)
            context.notices.malformed(error, from: connection.peer)
            return answerItself(SyntheticResponse(error), to: nil, nil)
        }
        guard let parsed else { return headIsTooLarge() }
        begin(parsed.head, parsed.fields, on: parsed.route, hasContent: hasContent)
    }

    private func begin(_ head: RequestHead, _ fields: HeadBlock, on route: Route?, hasContent: Bool) {
        let clients = connection.clients
        if clients.answersChallenges || head.method == .other && PurgeMethod.isMethod(of: head, fields.view),
            LaterAnswer.begin(head, fields, for: self)
        {
            return
        }
        do throws(SyntheticResponse) {
            let request = try context.admit(
                head, fields, on: route, from: connection.peer, isFromTrustedProxy: connection.isTrustedProxy,
                over: connection.security, isBound: connection.isBound)
            let arrival = Arrival(
                time: context.moment, generation: context.tags.generation, peer: connection.peerText,
                hasAddress: connection.peer.port != nil, isFromTrustedProxy: connection.isTrustedProxy,
                security: connection.security, madeID: request.needsID ? context.requestIDs.next() : .none)
            if hasContent { content = IncomingContent(head) }
            let made = Transaction(request, arrival, client: self, in: context, latestGroup: clients.latestGroup)
            transaction = made
            connection.begunTransactions += 1
            made.begin()
            settleContent()
        } catch {
            answerItself(error, to: head, fields)
        }
    }

    override func headIsTooLarge() {
        context.metrics.add(.malformedRequests)
        answerItself(SyntheticResponse(Status(431), "The request's head is too large."), to: nil, nil)
    }

    // MARK: Calls of the session

    override var awaitsContent: Bool { !isComplete }
    override func received(_ piece: Span<UInt8>) { take(content: piece) }
    override func trailersCame(_ text: Span<UInt8>) { take(trailers: text) }
    override func contentEnded() { contentIsComplete() }
    override func takesNothing() {
        if content != nil { awaitContent() }
    }

    override func contentIsLate() {
        guard delivery == nil else { return reset(.cancel) }
        context.notices.timeout(connection.peer)
        answerInstead(SyntheticResponse(.requestTimeout, "The request's content took too long."))
    }

    // MARK: The end

    override func closed(_ code: UInt32) {
        finish()
        connection.ended(self)
    }

    func connectionEnded() { finish() }

    /// The program ends before the response has begun.
    func programEnds() {
        guard delivery == nil, !isSent else { return }
        if let transaction {
            transaction.programEnds()
        } else if let answered {
            LaterAnswer(to: answered, for: self).purged(.ending)
        }
    }

    private func finish() {
        guard !isOver else { return }
        isOver = true
        record()
        endResponse()
        transaction.take()?.leave()
    }

    private func record() {
        let bytes = delivery?.bodyBytesSent ?? 0
        if let transaction {
            // A client that has received `Content-Length` bytes may leave before the origin's end of body arrives here.
            let hasAll = bytes > 0 && transaction.fetched?.length == Int(bytes)
            context.record(
                sent(transaction.status, bytes, isAborted: !isSent && !hasAll), of: transaction,
                client: connection.peerText, security: connection.security)
        } else if let answered {
            context.recorder.record(
                sent(answered.status, bytes, isAborted: !isSent), of: answered, client: connection.peerText,
                security: connection.security)
        }
    }

    /// Leaves the current transaction, whose place another answer takes.
    func leaveTransaction() { transaction.take()?.leave() }

    // MARK: What a transaction, or a later answer, asks

    var boundConnections: BoundConnections { connection.boundConnections }

    /// HTTP/2 has no upgrade (RFC 9113 §8.6), so no transaction of such a request asks for it.
    func tunnel(to upstream: UpstreamConnection, head: ByteBuffer) { reset(.internalError) }

    func settlePersistence() -> Bool { true }

    var peer: SocketAddress { connection.peer }
    var isTrustedProxy: Bool { connection.isTrustedProxy }
    var isSecure: Bool { connection.isSecure }
    var awaitsAnswer: Bool { !isOver && delivery == nil }
    func closesAfterAnswer() {}
    func settleAnswer() {}

    // MARK: Responses made by this proxy

    func answerItself(_ answer: SyntheticResponse, to head: RequestHead?, _ fields: HeadBlock?) {
        let buffer = ByteBuffer(capacity: 512)
        let content = context.write(answer, to: head?.method, .http2, persists: true, into: buffer)
        let madeID = context.applyRules(
            toOwnHeadIn: buffer, status: answer.status, answer.verdict, on: answer.route, to: head, fields,
            peer: connection.peerText, isFromTrustedProxy: isTrustedProxy, isSecure: isSecure, madeID: answer.madeID)
        let upstreamMetrics = answer.verdict == .refused ? nil : answer.route?.upstreamMetrics
        answered = AnsweredRequest(answer.status, answer.verdict, upstreamMetrics, head, fields, madeID: madeID)
        send(buffer, content, .sized, passesTrailers: false)
    }

    /// Sends a response made by this proxy in place of the current transaction. The rest of the request is not needed.
    func answerInstead(_ answer: SyntheticResponse) {
        endContent()
        let request = transaction?.request
        leaveTransaction()
        answerItself(answer.on(request?.route), to: request?.head, request?.fields)
    }
}
