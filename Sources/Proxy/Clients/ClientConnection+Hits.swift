import Bytes
import Libevent
import Storage
import Telemetry

/// How what the `HitPath` has put together goes out.
extension ClientConnection {
    /// Sends what `out` holds and `part` of the body behind it; or holds it back, for the hits of pipelined requests to go out in one write.
    /// - Parameters:
    ///   - hasMore: the client has sent something behind the request.
    ///   - closes: it has said that it sends nothing behind it.
    func sendHit(_ out: ByteBuffer, _ stored: StoredResponse, _ part: Range<Int>, closes: Bool, hasMore: Bool) {
        let isLast = closes && !hasMore
        // A small one goes into the same piece of memory as the head: one vector less for the kernel.
        if stored.appendPacked(part, to: out) {
            if hasMore, persists, out.count < Self.mostHeld {
                holdsHits = true
                requestBegan = 0
                return
            }
            finishHit(out, CompleteBodyReader(ShortList(), part: 0..<0), write(out.span), isLast)
        } else {
            let reader = CompleteBodyReader(stored.pieces ?? ShortList(), part: part)
            if reader.remaining >= Delivery.largeBody { boundSendQueue() }
            let gather = worker.gatherList
            gather.removeAll()
            reader.gather(into: gather)
            finishHit(out, reader, write(out.span, gather), isLast)
            gather.removeAll()
        }
    }

    /// Bytes of hits that go out in one write.
    private static let mostHeld = 24 << 10

    /// Sends the hits that were held back. Where the client does not take all of them, or is gone, the connection is not `reading` afterwards.
    func sendHeldHits() {
        guard holdsHits else { return }
        // Only on a connection that is kept are hits held back, whatever the request behind them says.
        let keepsAliveThen = keepsAlive
        keepsAlive = true
        let out = worker.scratch
        finishHit(out, CompleteBodyReader(ShortList(), part: 0..<0), write(out.span), false)
        if phase == .reading { keepsAlive = keepsAliveThen }
    }

    private func finishHit(_ out: ByteBuffer, _ body: CompleteBodyReader, _ result: WriteResult, _ isLast: Bool) {
        holdsHits = false
        let sent: Int
        switch result {
        case .wrote(let count): sent = count
        case .wouldBlock: sent = 0
        case .failed: return end()
        }
        worker.metrics.add(.clientBytesOut, UInt64(sent))
        let ofHead = min(sent, out.count)
        guard ofHead < out.count || sent - ofHead < body.remaining else { return hitSent(isLast: isLast) }
        // The rest goes out as the client takes it.
        out.consume(ofHead)
        let rest = ByteBuffer(capacity: max(64, out.count))
        rest.append(out.span)
        var body = body
        if sent > ofHead { body.advance(by: sent - ofHead) }
        sendRest(rest, body)
    }
}
