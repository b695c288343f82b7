import Bytes
import HTTP2
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry

/// The response on a stream of HTTP/2: its head becomes fields at once, its body frames as the session asks for it. The
/// request is in the subclass `HTTP2Exchange`.
///
/// ```
/// none ─a plain hit that the client's windows let pass→ hit body ─┐
///   └─any other head→ delivery ───────────────────────────────────┴─its last byte is in a frame→ sent
/// ```
class HTTP2Response: ServerStream, TurnTaker {
    final let connection: HTTP2Connection
    final let context: LoopContext
    final var transaction: Transaction?
    /// The request answered without a transaction, for the log.
    final var answered: AnsweredRequest?
    final private(set) var delivery: Delivery?
    /// The body of a small hit, which the client's windows let pass at once; it is recorded as sent.
    private var hitBody: CompleteBodyReader?
    /// Bytes of it that are not in frames yet: to examine the reader would copy it.
    private var hitBytesLeft = 0
    final private(set) var deadline: StreamDeadline?
    final let began: Int64
    final private(set) var firstByteSent: Int64 = 0
    /// Whether the response's last byte is in a frame.
    final private(set) var isSent = false

    init(_ id: Int32, on connection: HTTP2Connection) {
        self.connection = connection
        context = connection.context
        began = connection.loop.now
        super.init(id: id)
    }

    /// The client has nothing to take: the remaining deadline is that of the request's content, if it is being read.
    func takesNothing() {}
    /// The client has sent no content in time.
    func contentIsLate() {}

    /// Sends a plain hit, whose head is in the loop's field list.
    /// - Parameter fields: of the request.
    final func send(_ hit: HitPath.Hit, to head: RequestHead, _ fields: FieldView) {
        guard let session = connection.session else { return }
        let list = connection.clients.fieldList
        firstByteSent = connection.loop.now
        guard session.submit(list, for: id, hasContent: !hit.part.isEmpty) else { return }
        guard connection.promises(hit.part.count, to: id) else {
            answered = AnsweredRequest(
                hit.status, .hit, hit.route.upstreamMetrics, head, HeadBlock(copying: fields), madeID: hit.madeID)
            let reader = CompleteBodyReader(hit.stored.pieces ?? ShortList(), part: hit.part, of: hit.stored.bodies)
            return deliver(Delivery(head: nil, .one(.complete(reader)), framing: .sized))
        }
        if !hit.part.isEmpty {
            hitBody = CompleteBodyReader(hit.stored.pieces ?? ShortList(), part: hit.part)
            hitBytesLeft = hit.part.count
            connection.unfinishedHits += 1
        }
        isSent = true
        context.recorder.recordHit(
            sent(hit.status, UInt64(hit.part.count), isAborted: false), of: head, fields, on: hit.route,
            client: connection.peerText, security: connection.security, madeID: hit.madeID)
    }

    final func send(
        _ head: ByteBuffer, _ sources: consuming Delivery.Sources, _ framing: Delivery.Framing, passesTrailers: Bool
    ) {
        firstByteSent = connection.loop.now
        let made = Delivery(head: nil, sources, framing: .untilClose, passesTrailers: passesTrailers)
        let hasContent = made.hasContent
        submit(head.span, hasContent: hasContent)
        if hasContent { deliver(made) } else { (delivery, isSent) = (made, true) }
    }

    private func deliver(_ made: Delivery) {
        delivery = made
        if made.isLarge { connection.boundQueue() }
        awaitTaking(of: made)
    }

    final func send(interim: ByteSlice) {
        guard delivery == nil else { return }
        submit(interim.span, hasContent: false, isInterim: true)
    }

    /// Sends one or more heads of HTTP/1.1 as fields.
    private func submit(_ heads: Span<UInt8>, hasContent: Bool, isInterim: Bool = false) {
        let list = connection.clients.fieldList
        var start = 0
        while start < heads.count {
            list.removeAll()
            start += list.append(head: heads.extracting(start..<heads.count))
            connection.tell { _ = $0.submit(list, for: id, hasContent: hasContent, isInterim: isInterim) }
            if !isInterim { return }
        }
    }

    // MARK: The body

    override final func content(most: Int) -> Content {
        let left = hitBytesLeft
        if left > 0 { return Content(count: min(most, left), isLast: left <= most) }
        guard let delivery else { return Content(count: 0, isLast: true) }
        let (count, end) = delivery.frame(most: most, context.gatherList)
        var next = Content(count: count, isLast: false)
        switch end {
        case .complete:
            next.isLast = true
            next.hasTrailers = submitTrailers(of: delivery)
            isSent = true
            awaitNothing()
        case .more where count > 0: break
        case .more, .starved:
            guard count == 0 else { break }
            awaitNothing()
            if let body = delivery.followed { connection.clients.starvedClients.wait(self, for: body) }
        case .failed:
            next.isCutOff = count == 0
        }
        return next
    }

    private func submitTrailers(of delivery: Delivery) -> Bool {
        guard let trailers = delivery.trailers, let session = connection.session else { return false }
        let list = connection.clients.fieldList
        list.removeAll()
        list.append(lines: trailers.span)
        return !list.isEmpty && session.submit(trailers: list, for: id)
    }

    override final func take(_ count: Int, into output: FrameOutput) {
        // Taken, not copied: its parts would be retained and released.
        if var reader = hitBody.take() {
            reader.forEach(first: count) { output.append($0) }
            hitBytesLeft -= count
            guard hitBytesLeft > 0 else { return connection.unfinishedHits -= 1 }
            reader.advance(by: count)
            hitBody = reader
            return
        }
        guard let delivery, count > 0 else { return }
        delivery.takeFrame(count, context.gatherList) { output.append($0) }
        if !isSent { awaitTaking(of: delivery) }
        if delivery.isLarge { connection.boundQueue() }
    }

    private func hitIsOver() {
        (hitBody, hitBytesLeft) = (nil, 0)
        connection.unfinishedHits -= 1
    }

    /// A small hit that did not pass at once, after all, waits for its client like others.
    final func deliverHit() {
        guard let body = hitBody else { return }
        hitIsOver()
        isSent = false
        deliver(Delivery(head: nil, .one(.complete(body)), framing: .sized))
    }

    final func turnCame() {
        guard let delivery, !isSent else { return }
        awaitTaking(of: delivery)
        connection.tell { $0.resume(id) }
    }

    // MARK: Time

    /// Waits for the client to let bytes pass. A delivery that may hold up other clients is checked every
    /// `HoldUpBound.interval`, even if its client takes some.
    private func awaitTaking(of delivery: Delivery) {
        let timeouts = connection.clients.timeouts
        delivery.isDueBy = connection.loop.now + timeouts.send
        let mayHoldUp = timeouts.holdUp != nil && delivery.mayHoldUpOthers
        if deadline?.waitsFor == .taking, mayHoldUp { return }
        due(.taking, mayHoldUp ? min(timeouts.send, HoldUpBound.interval) : timeouts.send)
    }

    private func awaitNothing() {
        guard deadline?.waitsFor == .taking else { return }
        deadline?.clear()
        takesNothing()
    }

    /// The client has taken nothing for `send-timeout`, or the periodic check is due. Time counts only while its windows
    /// are closed: the turns of other streams are not its fault.
    final func takingIsDue() {
        guard let delivery, let session = connection.session else { return }
        let (now, timeouts) = (connection.loop.now, connection.clients.timeouts)
        guard connection.isBlocked || !session.hasRoom(for: 1, of: id) else { return awaitTaking(of: delivery) }
        guard now < delivery.isDueBy else { return reset(.cancel) }
        if let bound = timeouts.holdUp, delivery.hasHeldUpOthers(at: now, bound) {
            transaction?.provenance.detail = Recorder.heldUpOthers
            return reset(.cancel)
        }
        due(.taking, min(delivery.isDueBy - now, HoldUpBound.interval))
    }

    final func due(_ waiting: StreamDeadline.Waiting, _ nanoseconds: Int64) {
        let deadline = deadline ?? StreamDeadline(of: self)
        self.deadline = deadline
        deadline.due(waiting, connection.loop.now + nanoseconds)
    }

    // MARK: The end

    final func sent(_ status: Status?, _ bytes: UInt64, isAborted: Bool) -> SentResponse {
        SentResponse(
            status: firstByteSent == 0 && isAborted ? nil : status, isAborted: isAborted, began: began,
            firstByte: firstByteSent, bodyBytes: bytes, isProxied: connection.isTrustedProxy)
    }

    /// The stream is closed.
    final func endResponse() {
        deadline?.end()
        delivery.take()?.detach()
        if hitBody != nil { hitIsOver() }
    }

    final func reset(_ code: HTTP2Error.Code) { connection.tell { $0.reset(id, code.number) } }
}
