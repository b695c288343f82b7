import Bytes
import HTTPSemantics
import Libevent
import Telemetry
import Upstream

/// Sending responses: those of transactions, those made by this proxy, and the rest of a hit; then the step from one
/// response to the next request.
extension ClientConnection: TransactionClient {
    var persists: Bool { output.keepsAlive && worker.keepsConnections }

    func settlePersistence() -> Bool {
        // Unread content may never arrive (RFC 9110 §10.1.1), and a client that has shut its sending side sends no
        // further request. In both cases the connection closes, and the response says `Connection: close`.
        let hasNoMore = input.hasEnded && input.isEmpty
        output.keepAlive(persists && input.content == nil && !hasNoMore)
        return output.keepsAlive
    }

    func send(
        _ head: ByteBuffer, _ sources: consuming Delivery.Sources, _ framing: Delivery.Framing, passesTrailers: Bool
    ) {
        if framing == .untilClose { output.beLast() }
        if output.interims == nil, framing != .chunked, sources.gatherAll(into: worker.gatherList) {
            return sendAtOnce(head, sources, framing)
        }
        // Interim responses that are not sent yet go first.
        let pending = output.takeInterims()
        pending?.append(head.span)
        let response = Delivery(head: pending ?? head, sources, framing: framing, passesTrailers: passesTrailers)
        output.deliver(response)
        pump(response)
        if output.delivery === response, pending == nil { response.keepHead() }
    }

    /// Sends a response whose body is complete and in the worker's list. Usually the kernel takes all of it, and no
    /// `Delivery` is needed.
    private func sendAtOnce(
        _ head: ByteBuffer, _ sources: consuming Delivery.Sources, _ framing: Delivery.Framing
    ) {
        let list = worker.gatherList
        let ofBody = list.byteCount
        if ofBody >= Delivery.largeBody { boundSendQueue() }
        let result = write(head, then: list)
        list.removeAll()
        let sent: Int
        switch result {
        case .wrote(let count): sent = count
        case .wouldBlock: sent = 0
        case .failed: return end()
        }
        noteSent(sent)
        if sent == head.count + ofBody { return responseEnded(bodyBytes: UInt64(ofBody), isAborted: false) }
        goOn(with: Delivery(head: head, sources, framing: framing), after: sent)
    }

    /// - Parameter sent: bytes of head and body that are sent already.
    func goOn(with rest: Delivery, after sent: Int) {
        rest.account(sent)
        rest.keepHead()
        output.deliver(rest)
        armWrite()
        due(.send, worker.timeouts.send)
    }

    func noteSent(_ count: Int) {
        guard count > 0 else { return }
        worker.metrics.add(.clientBytesOut, UInt64(count))
        output.noteSent(at: loop.now)
    }

    func send(interim: ByteSlice) {
        guard phase == .serving, output.delivery == nil else { return }
        let buffer = output.interims ?? ByteBuffer(capacity: 256)
        buffer.append(interim)
        output.queue(buffer)
        flushInterims()
    }

    func flushInterims() {
        guard let buffer = output.interims else { return disarmWrite() }
        switch write(buffer.span) {
        case .wrote(let count):
            worker.metrics.add(.clientBytesOut, UInt64(count))
            buffer.consume(count)
            guard buffer.isEmpty else { return armWrite() }
            _ = output.takeInterims()
            disarmWrite()
            awaitResponse()
        case .wouldBlock: armWrite()
        case .failed: end()
        }
    }

    func resumeContent() {
        guard phase == .serving, input.content != nil else { return }
        startReading()
        // The buffer may have been returned when it was empty; the decoder may still have the end of the content to
        // report.
        if input.context == nil { input.borrow(worker.lendContext()) }
        readContent()
        giveBackContextIfUnused()
    }

    func pump() {
        if let delivery = output.delivery { pump(delivery) }
    }

    private func pump(_ delivery: Delivery) {
        if delivery.isLarge { boundSendQueue() }
        var sent = 0
        let outcome = delivery.pump(on: self, worker.gatherList, sent: &sent)
        noteSent(sent)
        switch outcome {
        case .done:
            responseEnded(bodyBytes: delivery.bodyBytesSent, isAborted: false)
        case .blocked:
            armWrite()
            // The body may have grown, but a client that takes no byte makes no progress: keep its deadline.
            if sent > 0 || deadline.waitsFor != .send { awaitTaking(of: delivery) }
        case .starved:
            disarmWrite()
            if deadline.waitsFor == .send { awaitContent() }
            if sent > 0 || deadline.waitsFor != .response { awaitResponse() }
            if let body = delivery.followed { worker.starvedClients.wait(self, for: body) }
        case .cutOff:
            // The end of the body is missing. With a length or chunks the client detects that, so close gracefully: the
            // bytes sent before must still arrive.
            guard delivery.framing != .untilClose else { return end() }
            output.beLast()
            responseEnded(bodyBytes: delivery.bodyBytesSent, isAborted: true)
        case .peerGone:
            end()
        }
    }

    /// Waits for the client to take bytes. A delivery that may hold up other clients is checked every
    /// `HoldUpBound.interval`, even if its client takes some.
    private func awaitTaking(of delivery: Delivery) {
        guard worker.timeouts.holdUp != nil, delivery.mayHoldUpOthers else { return due(.send, worker.timeouts.send) }
        delivery.isDueBy = loop.now + worker.timeouts.send
        due(.send, min(worker.timeouts.send, HoldUpBound.interval), onlyIfNot: .send)
    }

    /// The deadline for taking bytes: the client has taken none for `send-timeout`, or its periodic check is due.
    func takingIsDue() {
        let now = loop.now
        guard let delivery = output.delivery, now < delivery.isDueBy else { return end(abruptly: true) }
        if let bound = worker.timeouts.holdUp, delivery.hasHeldUpOthers(at: now, bound) {
            transaction?.noteHeldUpOthers()
            return end(abruptly: true)
        }
        due(.send, min(delivery.isDueBy - now, HoldUpBound.interval))
    }

    /// Ends the wait for the client to take bytes. The remaining deadline is that of the request's content, if it is
    /// being read.
    func awaitContent() {
        notDue()
        if input.content != nil, isReading { due(.content, worker.timeouts.content) }
    }

    private func responseEnded(bodyBytes: UInt64, isAborted: Bool) {
        disarmWrite()
        if deadline.waitsFor == .send { awaitContent() }
        record(bodyBytes: bodyBytes, isAborted: isAborted)
        output.endDelivery()?.detach()
        endTransaction()
        output.logged()
        finishIfDone()
    }

    /// Returns to `reading` once the response is sent and the request's content is read.
    func finishIfDone() {
        guard phase == .serving, transaction == nil, output.delivery == nil else { return }
        guard persists, input.content == nil else {
            input.contentEnded()
            return linger()
        }
        enter(.reading)
        input.answered()
        due(.request, worker.timeouts.idle)
        if !input.hasEnded { startReading() }
        // Inside `serve`, its loop takes the next request; elsewhere the next request may be in the buffer already.
        guard !input.isBeingTaken else { return }
        if let context = input.context { serve(context) } else if input.hasEnded { end() }
    }

    func tunnel(to upstream: UpstreamConnection, head: ByteBuffer) {
        // Write the access-log line before the 101 is sent, since the transaction ends here.
        output.noteSent(at: loop.now)
        record(bodyBytes: 0, isAborted: false)
        enter(.tunnelling)
        notDue()
        let early = input.context?.buffer.copied()
        giveBackContext()
        // Interim responses that are not sent yet go first.
        let pending = output.takeInterims()
        pending?.append(head.span)
        let relay = Tunnel(
            client: self, upstream: upstream, toClient: pending ?? head, toUpstream: early, worker: worker)
        begin(relay)
        endTransaction()
        relay.start()
    }

    /// Writes one line to the access log and updates the metrics.
    /// - Parameter bodyBytes: bytes of content that were sent.
    func record(bodyBytes: UInt64, isAborted: Bool) {
        if let transaction {
            // A client that has received `Content-Length` bytes may close before the origin's end of body arrives here:
            // that is no abort. A response without content gives no such evidence.
            let hasAll = bodyBytes > 0 && transaction.fetched?.length == Int(bodyBytes)
            let isAborted = isAborted && !hasAll
            worker.record(sent(transaction.status, bodyBytes, isAborted: isAborted), of: transaction, client: peerText)
        } else if let answered = output.answered {
            let bodyBytes = bodyBytes + UInt64(isAborted ? 0 : answered.contentInHead)
            worker.recorder.record(
                sent(answered.status, bodyBytes, isAborted: isAborted), of: answered, client: peerText)
        }
    }

    private func sent(_ status: Status?, _ bodyBytes: UInt64, isAborted: Bool) -> SentResponse {
        SentResponse(
            status: output.firstByteSent == 0 && isAborted ? nil : status, isAborted: isAborted,
            began: input.requestBegan,
            firstByte: output.firstByteSent,
            bodyBytes: bodyBytes, isProxied: isTrustedProxy)
    }
}

extension ClientConnection: TurnTaker {
    /// The body has grown or ended: send more.
    func turnCame() {
        if phase == .serving { pump() }
    }
}
