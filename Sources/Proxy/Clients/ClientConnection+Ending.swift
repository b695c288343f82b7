import Bytes
import HTTPSemantics
import Libevent
import Telemetry
import Upstream

/// Refusing requests, and ending the connection.
extension ClientConnection {
    func refuse(_ error: MessageSyntaxError) {
        worker.metrics.add(.malformedRequests)
        worker.notices.malformed(error, from: peer)
        answerInstead(OwnAnswer(error))
    }

    /// An answer of our own in the place of the transaction under way, or to what never became one; the last on this
    /// connection.
    func answerInstead(_ answer: OwnAnswer) {
        keepsAlive = false
        // That of the response before.
        if phase == .reading { firstByteSent = 0 }
        enter(.serving)
        content = nil
        let transaction = transaction.take()
        transaction?.leave()
        let admitted = transaction?.request.admitted
        respondWithoutTransaction(answer, .refused, to: admitted?.head, admitted?.fields)
    }

    /// An answer of our own to what never became a transaction.
    /// - Parameter route: `nil` for a refusal.
    func respondWithoutTransaction(
        _ answer: OwnAnswer, _ verdict: Verdict, to head: RequestHead?, _ fields: HeadBlock?, on route: Route? = nil
    ) {
        let buffer = ByteBuffer(capacity: 512)
        let content = worker.loopSettings.errors.write(
            answer, to: head, nil, upstream: nil, persists: keepsAlive, date: worker.loop.wallClockSeconds, into: buffer
        )
        answered = AnsweredRequest(answer.status, verdict, route?.upstreamMetrics, head, fields)
        send(buffer, content, .sized, passesTrailers: false)
    }

    /// Closes once the peer has read what is on its way, or after a bounded time (RFC 9112 §9.6).
    func linger() {
        enter(.lingering)
        try? shutdownWrite()
        if inputEnded { return end() }
        due(.linger, worker.timeouts.linger)
        startReading()
    }

    func discard() {
        let context = context ?? worker.lendContext()
        self.context = context
        context.buffer.removeAll()
        switch read(into: context.buffer, minimum: 4096) {
        case .bytes, .wouldBlock: giveBackContext()
        case .endOfStream, .failed: end()
        }
    }

    /// Closes now, whatever is under way.
    func end(abruptly: Bool = false) {
        guard phase != .closed else { return }
        if phase == .serving { record(bodyBytes: delivery?.bodyBytesSent ?? 0, isAborted: true) }
        // Where the close marks the body's end, a plain close would look like a complete body.
        let abruptly = abruptly || delivery?.framing == .untilClose
        enter(.closed)
        transaction.take()?.leave()
        delivery.take()?.detach()
        tunnelRelay.take()?.clientEnded()
        deadline = deadline.cancelled(on: worker.deadlines)
        giveBackContext()
        if abruptly { abort() } else { close() }
        worker.ended(self)
    }

    func giveBackContextIfUnused() {
        if let context, context.buffer.isEmpty { giveBackContext() }
    }

    /// Not inside `serve`, which gives it back itself.
    func giveBackContext() {
        guard !isServing, let lent = context.take() else { return }
        worker.takeBack(lent)
    }

    /// The program ends: no request after the one under way.
    func drain() {
        keepsAlive = false
        // Requests that have come already are answered: left unread, they would turn the close into a reset.
        if phase == .reading { receive() }
        // A head that has begun still has its time to become complete (`head-timeout`).
        if phase == .reading, !hasBegunHead { end() }
    }

    /// When its idle time ends; `nil` while a request has begun.
    var idleUntil: Int64? { phase == .reading && deadline.waitsFor == .request ? deadline.time : nil }

    /// Makes room for another client, if this one is idle: ends, unless a request has come in the meantime, which is
    /// answered.
    /// - Returns: whether it has ended.
    func giveWay() -> Bool {
        guard idleUntil != nil else { return phase == .closed }
        let before = requestCount
        receive()
        if idleUntil != nil, requestCount == before { end() }
        return phase == .closed
    }

    /// Whether a part of a request is here. Empty lines before it do not count (RFC 9112 §2.2).
    private var hasBegunHead: Bool {
        guard let buffer = context?.buffer else { return false }
        let bytes = buffer.span
        for index in bytes.indices where bytes[index] != 0x0d && bytes[index] != 0x0a { return true }
        return false
    }
}
