import Bytes
import Libevent
import Storage
import Telemetry

/// Sending what `HitPath` has put together.
extension ClientConnection {
    enum HitOutcome {
        /// All of it, or it is held back and goes out later.
        case sent
        /// The rest goes out as the client takes it.
        case begun(contentInHead: Int)
        case failed
    }

    /// Sends what `out` holds and `part` of the body behind it; or holds it back, for the hits of pipelined requests to
    /// go out in one write.
    /// - Parameters:
    ///   - hasMore: the client has sent something behind the request.
    ///   - closes: it has said that this is its last request.
    func sendHit(_ out: ByteBuffer, _ stored: StoredResponse, _ part: Range<Int>, closes: Bool, hasMore: Bool)
        -> HitOutcome
    {
        let isLast = closes && !hasMore
        // A small one goes into the same piece of memory as the head: one vector less for the kernel.
        if stored.appendPacked(part, to: out) {
            if hasMore, persists, out.count < Self.mostHeld {
                holdsHits = true
                requestBegan = 0
                return .sent
            }
            return finishHit(
                out, CompleteBodyReader(ShortList(), part: 0..<0), write(out.span), isLast, keepsAlive: keepsAlive,
                contentInHead: part.count)
        } else {
            let reader = CompleteBodyReader(stored.pieces ?? ShortList(), part: part)
            if reader.remaining >= Delivery.largeBody { boundSendQueue() }
            let gather = worker.gatherList
            gather.removeAll()
            reader.gather(into: gather)
            defer { gather.removeAll() }
            return finishHit(out, reader, write(out.span, gather), isLast, keepsAlive: keepsAlive)
        }
    }

    /// Bytes of hits that go out in one write.
    private static let mostHeld = 24 << 10

    /// Sends the hits that were held back. Afterwards the phase is still `reading` only if the client has taken all of
    /// them.
    func sendHeldHits() {
        guard holdsHits else { return }
        let out = worker.scratch
        // Hits are held back only on a connection that persists; `keepsAlive` is by now what the request behind them
        // says.
        _ = finishHit(out, CompleteBodyReader(ShortList(), part: 0..<0), write(out.span), false, keepsAlive: true)
    }

    /// - Parameter mayPersist: whether another request may come behind what `out` answers.
    private func finishHit(
        _ out: ByteBuffer, _ body: CompleteBodyReader, _ result: WriteResult, _ isLast: Bool,
        keepsAlive mayPersist: Bool, contentInHead: Int = 0
    ) -> HitOutcome {
        holdsHits = false
        let sent: Int
        switch result {
        case .wrote(let count): sent = count
        case .wouldBlock: sent = 0
        case .failed:
            end()
            return .failed
        }
        guard sent < out.count + body.remaining else {
            worker.metrics.add(.clientBytesOut, UInt64(sent))
            hitSent(isLast: isLast, keepsAlive: mayPersist)
            return .sent
        }
        keepsAlive = mayPersist
        sendRest(out, body, after: sent)
        return .begun(contentInHead: contentInHead)
    }
}
