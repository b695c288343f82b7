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
            lookAgainAsReleased()
        case .failure(.failed(let error as NoMemory)):
            noteContact(with: error.server, status: error.status)
            fail(.overloaded, detail: Recorder.memoryFull)
        case .failure(.failed(let error)):
            let error = error as? UpstreamError ?? UpstreamError(.closed, detail: "\(error)")
            noteFailure(error)
            if let stale = standIn(on: error.originFailure) { return respond(with: stale, insteadOf: nil) }
            if ledFetch == nil, !request.route.policy.sharesErrors { return lookAgainAlone() }
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

    // MARK: Time limits

    /// Until when the request waits for `operation`, in nanoseconds of the loop's clock: at most `wait-timeout`, if it
    /// does not wait until the fetch ends (`.max`).
    func endOfWait(for operation: FetchOperation) -> Int64 {
        if waitsAsLong(as: operation) { return .max }
        return context.loop.now + context.settings.coalescing.waitTimeout.nanoseconds
    }

    /// Whether the request waits until the fetch ends, which the upstream's timeouts ensure: the fetch has its slot,
    /// and the request leads it, or has given up a wait before. A request gives up only one wait: so requests that gave
    /// up together wait together, and the number of fetches follows from the time that passes, not from the number of
    /// clients. If the second wait ended after another `wait-timeout`, all but a few would get 503 as soon as an origin
    /// always takes a little longer.
    func waitsAsLong(as operation: FetchOperation) -> Bool {
        // The leader reads the state of the fetch itself: the operation may have its slot while the fetch has not begun
        // yet on this loop.
        if let ledFetch { return ledFetch.hasBegun }
        return sharingHistory.hasWaited && operation.hasBegun
    }

    /// Gives up the wait: content that came before the fetch has a slot cannot be kept.
    func contentFoundNoMemory() {
        guard stopWaiting() else { return }
        context.notices.overloaded(context.shared)
        meets(.memory)
    }
}
