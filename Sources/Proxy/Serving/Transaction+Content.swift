import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Telemetry
import Upstream

/// What the fetch that this request led reports, and the content that the client sends through it.
extension Transaction: FetchLeader {
    /// The fetch that is for this request alone, through which its content goes.
    var unsharedFetch: Fetch? {
        guard let ledFetch, !ledFetch.plan.isShared else { return nil }
        return ledFetch
    }

    var wasReleased: Bool { releases > 0 }

    /// RFC 9110 §15.2.1.
    private static let goOn = ByteSlice("HTTP/1.1 100 Continue\r\n\r\n")

    /// Begins a request with content: reads that ahead where it may be little, and looks up when it is here; else at
    /// once. May answer before it returns.
    func beginWithContent() {
        guard mayGather else { return look() }
        beginGathering()
        provenance.verdict = .pass
        contentAhead = OutgoingContent(UpstreamRequest.Content(request.head.framing))
        // The origin, which is not asked yet, cannot say it.
        if request.awaitsContinue { client.send(interim: Self.goOn) }
    }

    /// Content that is known to be more is not waited for: its client may send the rest as slowly as it likes after any
    /// beginning, and what is streamed is copied nowhere.
    private var mayGather: Bool {
        let most = worker.settings.clients.bodyBuffer
        return switch request.head.framing {
        case .length(let length): length <= UInt64(most) && worker.shared.hasRoomAhead(for: Int(length))
        case .chunked: most > 0 && worker.shared.hasRoomAhead(for: 0)
        case .none, .untilClose: false
        }
    }

    /// - Returns: whether the piece is held; else it is too much, or there is no memory for it.
    private func gather(_ content: Span<UInt8>) -> Bool {
        guard let ahead = contentAhead, ahead.count + content.count <= worker.settings.clients.bodyBuffer else {
            return false
        }
        let lack = ahead.lack(for: content.count)
        if lack > 0 {
            guard worker.shared.reserveAhead(lack) else { return false }
            ahead.grow(for: content.count, reservedOf: worker.shared.budget)
        }
        ahead.append(content)
        return true
    }

    /// A piece of content from the client. Where no more is read ahead the request may be answered before this returns.
    /// - Returns: false when no more can be taken at the moment.
    func receive(content: Span<UInt8>) -> Bool {
        if state == .gathering {
            if gather(content) { return true }
            endGathering()
            look()
        }
        guard let unsharedFetch else { return true }
        contentIsHeldBack = !unsharedFetch.send(content)
        return !contentIsHeldBack
    }

    /// As `receive`, it may answer the request.
    func endContent(trailers: ByteSlice?) {
        guard state == .gathering else {
            unsharedFetch?.endContent(trailers: trailers)
            return
        }
        contentAhead?.end(trailers: trailers)
        endGathering()
        look()
    }

    func fetchTakesContent(_ fetch: Fetch) {
        guard contentIsHeldBack else { return }
        contentIsHeldBack = false
        client.resumeContent()
    }

    func fetch(_ fetch: Fetch, received interim: ByteSlice) { received(interim: interim) }

    func fetch(_ fetch: Fetch, brings result: consuming Result<FetchedResponse, OperationError>) {
        self.result = consume result
        // Content that came with the response's head goes out with it.
        worker.serveSoon(self)
    }

    func fetch(_ fetch: Fetch, answers response: FetchedResponse) {
        guard state == .waiting, let seat, seat.leave() else { return }
        // Before anything is sent: a request that comes after it must find a fetch that goes on for others, or none.
        seat.operation.cancelIfUnattended()
        self.seat = nil
        deadline.clear()
        stopLeading()
        respond(response)
    }

    func fetch(_ fetch: Fetch, upgradedTo connection: UpstreamConnection, head: ByteBuffer) {
        guard state == .waiting else { return connection.closeTunnel() }
        seat.take()?.leave()
        beginResponse(.switchingProtocols)
        provenance.verdict = .pass
        provenance.originStatus = .switchingProtocols
        contactedServer = ContactedServer(address: connection.addressText, duration: nil)
        client.tunnel(to: connection, head: head)
    }
}
