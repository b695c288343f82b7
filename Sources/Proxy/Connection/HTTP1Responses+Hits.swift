import Bytes
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry

/// Writing plain hits from the output of the batch: hits that wait there, and hits that are written at once.
extension HTTP1Responses {
    /// How much of a write the kernel has taken.
    enum Progress {
        case whole
        /// The rest is sent as the client takes it.
        case begun
        case failed
    }

    /// Sends the pending hits, which are the output from `start` on. The phase is still `reading` afterwards only if
    /// the kernel has taken all of them.
    final func sendPending(from start: Int) {
        let output = clients.batch.output
        let share = start..<output.count
        noteWritten(write(output.span.extracting(share)), of: share)
        output.truncate(to: start)
    }

    /// Sends the pending hits, which are the output from `start` on, and with them `hit`, whose head is the last; then
    /// records it.
    /// - Parameter fields: of the request, with all bytes of the buffer.
    final func send(_ hit: HitPath.Hit, from start: Int, to head: RequestHead, _ fields: FieldView) {
        let (output, list, began) = (clients.batch.output, context.gatherList, requestBegan)
        // The client sends no more requests (RFC 9112 §9.6), so no unread bytes can turn the close into a reset.
        // The word at the end of TLS may have to wait for room.
        let closes = head.connection.close && fields.bytes.count == head.length && !isSecure
        var body: CompleteBodyReader?
        if !hit.isInOutput {
            let reader = CompleteBodyReader(hit.stored.pieces ?? ShortList(), part: hit.part)
            if reader.remaining >= Delivery.largeBody { boundSendQueue() }
            reader.gather(into: list)
            body = reader.reading(hit.stored)
        }
        let result = write(output, from: start, then: list)
        list.removeAll()
        let progress = noteWritten(result, of: start..<output.count, body, persists: keepsAlive, closes: closes)
        output.truncate(to: start)
        let sent: SentResponse
        switch progress {
        case .whole:
            sent = SentResponse(
                status: hit.status, isAborted: false, began: began, firstByte: loop.now,
                bodyBytes: UInt64(hit.part.count), isProxied: isTrustedProxy)
        case .begun:
            answered = AnsweredRequest(
                hit.status, .hit, hit.route.upstreamMetrics, head, HeadBlock(copying: fields), madeID: hit.madeID,
                contentInHead: hit.isInOutput ? hit.part.count : 0)
            return
        case .failed:
            sent = SentResponse(
                status: nil, isAborted: true, began: began, firstByte: 0, bodyBytes: 0, isProxied: isTrustedProxy)
        }
        context.recorder.recordHit(
            sent, of: head, fields, on: hit.route, client: peerText, security: security, madeID: hit.madeID)
    }

    /// Accounts for a write of hits.
    /// - Parameters:
    ///   - share: the written range of the batch's output.
    ///   - body: the body written behind it.
    ///   - persists: whether the connection persists after them.
    ///   - closes: whether the connection closes after them at once, without waiting for the client.
    @discardableResult
    final func noteWritten(
        _ result: WriteResult, of share: Range<Int>, _ body: CompleteBodyReader? = nil, persists: Bool = true,
        closes: Bool = false
    ) -> Progress {
        let sent: Int
        switch result {
        case .wrote(let count): sent = count
        case .wouldBlock: sent = 0
        case .failed:
            end()
            return .failed
        }
        guard sent < share.count + (body?.remaining ?? 0) else {
            context.metrics.add(.clientBytesOut, UInt64(sent))
            requestBegan = 0
            if closes { end() } else if !persists { linger() } else { due(.request, clients.timeouts.idle) }
            return .whole
        }
        let (head, output) = (ByteBuffer(capacity: share.count), clients.batch.output)
        head.append(output.span.extracting(share))
        enter(.serving)
        firstByteSent = 0
        keepsAlive = persists
        noteSent(sent)
        let rest = body ?? CompleteBodyReader(ShortList(), part: 0..<0)
        sendRest(of: Delivery(head: head, .one(.complete(rest)), framing: .sized), after: sent)
        return .begun
    }
}
