import Bytes
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry
import Upstream

/// The responses of HTTP/1.1 on one client's connection: one at a time, in the order of their requests (RFC 9112 §9.3),
/// which the subclass `HTTP1Connection` takes.
///
/// A plain hit leaves the phase `reading` as it is, unless the kernel takes only a part of it. In phase `serving` there
/// is one response. A transaction makes it, or this proxy answered the request without one:
///
/// ```
/// empty ───1xx→ interims ─kernel takes them→ empty
///    │             └─head, behind them→ delivery
///    └─head→ delivery ─kernel has taken all of it→ empty
/// ```
///
/// | | reading | serving | tunnelling |
/// | --- | --- | --- | --- |
/// | `transaction`, or `answered` | | one of them | |
/// | `interims`, then `delivery` | | until sent completely | |
/// | `ownConnections`, if any | always | always | always |
///
/// This file has the step from one response to the next request, and the access log. The extensions send: responses of
/// transactions and of this proxy (`Sending`), and plain hits (`Hits`).
class HTTP1Responses: ClientTransport, TransactionClient, TurnTaker {
    final private(set) var transaction: Transaction?
    /// The request answered without a transaction, for the access log.
    final var answered: AnsweredRequest?
    /// Interim responses that the kernel has not taken yet.
    final var interims: ByteBuffer?
    /// The part of the current response that the kernel has not taken yet, once that response has begun.
    final var delivery: Delivery?
    /// The upstream connections reserved for this client, from its first request with connection-based authentication
    /// on.
    private var ownConnections: BoundConnections?
    /// When the response's first byte was sent (nanoseconds of the loop's clock); 0 before.
    final var firstByteSent: Int64 = 0
    /// Whether the connection persists after the current request. Settled when the head of the response is written: a
    /// client that was not told `Connection: close` may have sent its next request already.
    final var keepsAlive = true

    /// Begins the transaction that answers the current request.
    final func answer(_ request: consuming ClientRequest) {
        let arrival = Arrival(
            time: context.moment, generation: context.tags.generation, peer: peerText, hasAddress: peer.port != nil,
            isFromTrustedProxy: isTrustedProxy, security: security,
            madeID: request.needsID ? context.requestIDs.next() : .none)
        let new = Transaction(request, arrival, client: self, in: context, latestGroup: clients.latestGroup)
        transaction = new
        new.begin()
    }

    /// Detaches from the transaction: its response is sent, or another response replaces it.
    final func endTransaction() { transaction.take()?.leave() }

    // MARK: What the transport tells

    override final func sendMore() {
        if let delivery { pump(delivery) } else { flushInterims() }
    }

    /// The body has grown or ended: send more.
    final func turnCame() {
        if phase == .serving, let delivery { pump(delivery) }
    }

    override final func batchEnded() { watch() }

    override final func batchEnded(_ result: WriteResult, of share: Range<Int>) {
        noteWritten(result, of: share)
        watch()
    }

    override final func ended(wasServing: Bool) -> Bool {
        if wasServing { record(bodyBytes: delivery?.bodyBytesSent ?? 0, isAborted: true) }
        endTransaction()
        ownConnections?.close()
        let last = delivery.take()
        last?.detach()
        return last?.framing == .untilClose
    }

    /// A request whose response has not begun gets an error response. If request content is still unread, the close
    /// becomes a reset, which may overtake that error response.
    override final func cut() {
        if phase == .serving, delivery == nil {
            keepsAlive = false
            programEnds()
        }
        end()
    }

    /// The program ends before the response to the current request has begun.
    func programEnds() { transaction?.programEnds() }

    // MARK: After a response

    final func responseEnded(bodyBytes: UInt64, isAborted: Bool) {
        disarmWrite()
        if deadline.waitsFor == .send { awaitContent() }
        record(bodyBytes: bodyBytes, isAborted: isAborted)
        delivery.take()?.detach()
        endTransaction()
        answered = nil
        finishIfDone()
    }

    /// Returns to `reading` once the response is sent and the request's content is read.
    final func finishIfDone() {
        guard phase == .serving, transaction == nil, delivery == nil else { return }
        guard keepsAlive, !receivesContent else { return linger() }
        enter(.reading)
        requestBegan = 0
        due(.request, clients.timeouts.idle)
        if !hasEnded { startReading() }
        // While requests are taken from the buffer, the next one is taken in any case; else it may be there already.
        guard !isTaking else { return }
        if input != nil { bytesCame() } else if hasEnded { end() }
    }

    /// Writes one line to the access log and updates the metrics.
    /// - Parameter bodyBytes: bytes of content that were sent.
    private func record(bodyBytes: UInt64, isAborted: Bool) {
        if let transaction {
            // A client that has received `Content-Length` bytes may close before the origin's end of body arrives here:
            // that is no abort. A response without content gives no such evidence.
            let hasAll = bodyBytes > 0 && transaction.fetched?.length == Int(bodyBytes)
            context.record(
                sent(transaction.status, bodyBytes, isAborted: isAborted && !hasAll), of: transaction, client: peerText,
                security: security)
        } else if let answered {
            let bodyBytes = bodyBytes + UInt64(isAborted ? 0 : answered.contentInHead)
            context.recorder.record(
                sent(answered.status, bodyBytes, isAborted: isAborted), of: answered, client: peerText,
                security: security)
        }
    }

    private func sent(_ status: Status?, _ bodyBytes: UInt64, isAborted: Bool) -> SentResponse {
        SentResponse(
            status: firstByteSent == 0 && isAborted ? nil : status, isAborted: isAborted, began: requestBegan,
            firstByte: firstByteSent, bodyBytes: bodyBytes, isProxied: isTrustedProxy)
    }

    // MARK: What a transaction asks

    final func settlePersistence() -> Bool {
        // Unread content may never arrive (RFC 9110 §10.1.1), and a client that has shut its sending side sends no
        // further request. In both cases the connection closes, and the response says `Connection: close`.
        keepsAlive = keepsAlive && clients.keepsConnections && !receivesContent && !(hasEnded && isEmpty)
        return keepsAlive
    }

    func resumeContent() {}

    /// Whether its requests go over upstream connections that no other client uses.
    final var isBound: Bool { ownConnections != nil || security?.subject != nil }

    final var boundConnections: BoundConnections {
        let connections = ownConnections ?? BoundConnections()
        ownConnections = connections
        return connections
    }

    final func tunnel(to upstream: UpstreamConnection, head: ByteBuffer) {
        // Write the access-log line before the 101 is sent, since the transaction ends here.
        if firstByteSent == 0 { firstByteSent = loop.now }
        record(bodyBytes: 0, isAborted: false)
        enter(.tunnelling)
        notDue()
        let early = input?.buffer.copied()
        giveBackContext()
        // Interim responses that are not sent yet go first.
        let pending = interims.take()
        pending?.append(head.span)
        let relay = Tunnel(
            client: self, upstream: upstream, toClient: pending ?? head, toUpstream: early, metrics: context.metrics)
        self.tunnel = relay
        endTransaction()
        relay.start()
    }
}
