import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry
import Upstream

/// The way from the fetch's result, or the end of the wait for it, to the answer or another look-up.
extension Transaction {
    /// Takes the fetch's result.
    func take(_ result: Result<FetchedResponse, OperationError>) {
        // A departed client is noticed when the proxy writes to it.
        guard state == .waiting else { return }
        if case .success(let fetched) = result {
            if let stale = standIn(for: fetched) { return respond(with: stale, insteadOf: fetched.originStatus) }
            return respond(fetched)
        }
        leaveGroup()
        switch result {
        case .success: break
        case .failure(.released):
            context.metrics.add(.coalescing(.released))
            sharingHistory.noteRelease()
            lookAgain()
        case .failure(.failed(let error as NoMemory)):
            contactedServer = error.server
            provenance.originStatus = error.status
            fail(.overloaded, detail: Recorder.memoryFull)
        case .failure(.failed(let error)):
            let error = error as? UpstreamError ?? UpstreamError(.closed, detail: "\(error)")
            contactedServer = ContactedServer(address: error.server, duration: error.duration)
            if let stale = standIn(on: error.originFailure) { return respond(with: stale, insteadOf: nil) }
            if ledFetch == nil, !request.route.policy.sharesErrors {
                sharingHistory.giveUp()
                return lookAgain()
            }
            fail(SyntheticResponse(error), detail: error.word, upstream: error)
        case .failure(.cancelled):
            // Fetches with waiters are cancelled only when the program ends.
            fail(SyntheticResponse(.serviceUnavailable, "The proxy is being shut down."), detail: Recorder.shutdown)
        case .failure(.abandoned), .failure(.dependency):
            fail(SyntheticResponse(.badGateway, "The request to the origin was abandoned."), detail: "abandoned")
        }
    }

    /// No result will come: the fetch is cancelled, and its loop has ended.
    func programEnds() { take(.failure(.cancelled)) }

    private func respond(with stale: StoredResponse, insteadOf status: Status?) {
        leaveGroup()
        var provenance = provenance
        provenance.noteStandIn(stale, status: status, at: context.moment)
        respond(stale, length: stale.bodyLength, persists: client.settlePersistence(), provenance)
    }
}
