import Bytes
import Libevent
import Routing
import Telemetry

/// Sending a response as fast as the client takes it.
extension HTTP1Responses {
    final func send(
        _ head: ByteBuffer, _ sources: consuming Delivery.Sources, _ framing: Delivery.Framing, passesTrailers: Bool
    ) {
        if framing == .untilClose { keepsAlive = false }
        let ofHead = head.count
        if interims == nil, framing != .chunked, sources.gatherAll(into: context.gatherList, behind: head) {
            return sendAtOnce(head, ofHead, sources, framing)
        }
        // Interim responses that are not sent yet go first.
        let pending = interims.take()
        pending?.append(head.span)
        let response = Delivery(head: pending ?? head, sources, framing: framing, passesTrailers: passesTrailers)
        delivery = response
        pump(response)
        if delivery === response, pending == nil { response.keepHead() }
    }

    /// Sends a response whose body is complete, and is behind its head or in the loop's list
    /// (`LoopContext.gatherList`). Usually the kernel takes all of it, and no `Delivery` is needed.
    private func sendAtOnce(
        _ head: ByteBuffer, _ ofHead: Int, _ sources: consuming Delivery.Sources, _ framing: Delivery.Framing
    ) {
        let list = context.gatherList
        let ofBody = head.count - ofHead + list.byteCount
        if ofBody >= Delivery.largeBody { boundSendQueue() }
        let result = list.isEmpty ? write(head.span) : write(head, then: list)
        list.removeAll()
        head.truncate(to: ofHead)
        let sent: Int
        switch result {
        case .wrote(let count): sent = count
        case .wouldBlock: sent = 0
        case .failed: return end()
        }
        noteSent(sent)
        if sent == head.count + ofBody { return responseEnded(bodyBytes: UInt64(ofBody), isAborted: false) }
        sendRest(of: Delivery(head: head, sources, framing: framing), after: sent)
    }

    /// Sends the rest of a response as the client takes it.
    /// - Parameter sent: bytes of head and body that are sent already.
    final func sendRest(of response: Delivery, after sent: Int) {
        response.account(sent)
        response.keepHead()
        delivery = response
        armWrite()
        due(.send, clients.timeouts.send)
    }

    final func noteSent(_ count: Int) {
        guard count > 0 else { return }
        context.metrics.add(.clientBytesOut, UInt64(count))
        if firstByteSent == 0 { firstByteSent = loop.now }
    }

    final func send(interim: ByteSlice) {
        guard phase == .serving, delivery == nil else { return }
        let buffer = interims ?? ByteBuffer(capacity: 256)
        buffer.append(interim)
        interims = buffer
        flushInterims()
    }

    final func flushInterims() {
        guard let buffer = interims else { return disarmWrite() }
        switch flush(buffer, wrote: { context.metrics.add(.clientBytesOut, UInt64($0)) }) {
        case .done:
            interims = nil
            awaitResponse()
        case .blocked: break
        case .failed: end()
        }
    }

    final func pump(_ delivery: Delivery) {
        if delivery.isLarge { boundSendQueue() }
        var sent = 0
        let outcome = delivery.pump(on: self, context.gatherList, sent: &sent)
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
            if let body = delivery.followed { clients.starvedClients.wait(self, for: body) }
        case .cutOff:
            // The end of the body is missing. With a length or chunks the client detects that, so close gracefully: the
            // bytes sent before must still arrive.
            guard delivery.framing != .untilClose else { return end() }
            keepsAlive = false
            responseEnded(bodyBytes: delivery.bodyBytesSent, isAborted: true)
        case .peerGone:
            end()
        }
    }

    /// Waits for the client to take bytes. A delivery that may hold up other clients is checked every
    /// `HoldUpBound.interval`, even if its client takes some.
    private func awaitTaking(of delivery: Delivery) {
        guard clients.timeouts.holdUp != nil, delivery.mayHoldUpOthers else { return due(.send, clients.timeouts.send) }
        delivery.isDueBy = loop.now + clients.timeouts.send
        due(.send, min(clients.timeouts.send, HoldUpBound.interval), onlyIfNot: .send)
    }

    /// The deadline for taking bytes: the client has taken none for `send-timeout`, or its periodic check is due.
    final func takingIsDue() {
        let now = loop.now
        guard let delivery, now < delivery.isDueBy else { return end(abruptly: true) }
        if let bound = clients.timeouts.holdUp, delivery.hasHeldUpOthers(at: now, bound) {
            transaction?.provenance.detail = Recorder.heldUpOthers
            return end(abruptly: true)
        }
        due(.send, min(delivery.isDueBy - now, HoldUpBound.interval))
    }

    /// Ends the wait for the client to take bytes. The remaining deadline is that of the request's content, if it is
    /// being read.
    final func awaitContent() {
        notDue()
        if receivesContent, isReading { due(.content, clients.timeouts.content) }
    }
}
