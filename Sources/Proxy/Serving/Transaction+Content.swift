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

    /// A piece of content from the client.
    /// - Returns: false when no more can be taken at the moment.
    func receive(content: Span<UInt8>) -> Bool {
        guard let unsharedFetch else { return true }
        contentIsHeldBack = !unsharedFetch.send(content)
        return !contentIsHeldBack
    }

    func endContent(trailers: ByteSlice?) { unsharedFetch?.endContent(trailers: trailers) }

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
