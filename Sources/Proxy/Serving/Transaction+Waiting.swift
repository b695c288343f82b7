import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Telemetry
import Upstream

/// Waiting for a fetch, until it has a result or the time is up.
extension Transaction {
    /// From now on it waits only as long as the operator says.
    func boundWait(for operation: FetchOperation) {
        // Once its fetch has its slot, a leader waits as long as the fetch does.
        if ledFetch?.hasBegun == true { return }
        if case .alone = seat { operation.tellLeaderIfCancelled() }
        let patience = worker.settings.coalescing.waitTimeout.nanoseconds
        deadline = deadline.awaiting((), until: worker.now + patience, for: self, on: worker.deadlines)
    }

    /// What the fetch has for it.
    func take(_ result: Result<FetchedResponse, OperationError>) {
        guard state == .waiting else { return }
        deadline.clear()
        if case .success(let fetched) = result {
            if let stale = fallback(for: fetched) { return standIn(stale, for: fetched.originStatus) }
            return respond(fetched)
        }
        // A seat of its own ended with the result; a crowd's is kept until all its members have left.
        if let seat = seat.take(), seat.isInCrowd { seat.leave() }
        switch result {
        case .success: break
        case .failure(.released):
            worker.metrics.add(.coalescing(.released))
            lookAgain()
        case .failure(.failed(let error)):
            let error = error as? UpstreamError ?? UpstreamError(.closed, detail: "\(error)")
            contactedServer = ContactedServer(address: error.server, duration: error.duration)
            if let stale = fallback(on: error.originFailure) { return standIn(stale, for: nil) }
            if ledFetch == nil, !request.route.policy.sharesErrors { return lookAgain(alone: true) }
            fail(OwnAnswer(error), detail: error.failure.name, upstream: error)
        case .failure(.cancelled):
            // Fetches that somebody waits for are only cancelled when the program ends.
            fail(OwnAnswer(.serviceUnavailable, "The proxy is being shut down."), detail: Recorder.shutdown)
        case .failure(.abandoned), .failure(.dependency):
            fail(OwnAnswer(.badGateway, "The request to the origin was abandoned."), detail: "abandoned")
        }
    }

    /// The stored response that may replace an error of the fetch that it joined. For a leader, the fetch itself has
    /// tried that.
    private func fallback(for fetched: FetchedResponse) -> StoredResponse? {
        guard fallback != nil, let status = fetched.originStatus, status.isServerError, fetched.source == .origin,
            request !== fetched.leader
        else { return nil }
        return fallback(on: .status(status))
    }

    private func standIn(_ stale: StoredResponse, for status: Status?) {
        seat.take()?.leave()
        var provenance = provenance
        provenance.noteStandIn(stale, status: status, at: worker.moment)
        self.provenance = provenance
        respond(stale, length: stale.bodyLength, persists: client.settlePersistence())
    }

    func waitedTooLong() {
        guard state == .waiting, let seat else { return }
        let operation = seat.operation
        // Its fetch has got its slot since.
        if ledFetch?.hasBegun == true { return }
        if seat.leave() {
            stopWaiting()
            boundExceeded("wait-timeout", by: ledFetch == nil ? operation : nil, meaning: .timeout)
        }
    }
}
