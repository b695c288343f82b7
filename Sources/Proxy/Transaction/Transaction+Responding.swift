import Bytes
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry
import Upstream

/// The way from a stored, fetched or synthetic response to the head that the client gets; and the answer if there is no
/// response.
extension Transaction {
    func serve(_ stored: StoredResponse, detail: StaticString? = nil) {
        // A copy in a local variable avoids the run-time check of exclusive access; the same in `respond`.
        var provenance = provenance
        provenance.note(stored, detail: detail, at: context.moment)
        stored.noteUse()
        respond(stored, length: stored.bodyLength, persists: client.settlePersistence(), provenance)
    }

    func respond(_ fetched: FetchedResponse) {
        let persists = client.settlePersistence()
        let traits = mayShareAnswer(of: fetched) ? SharedAnswer.Traits(fetched, self, persists: persists) : nil
        if let traits, let answer = fetched.sharedAnswer.withLock({ $0 }), answer.traits == traits {
            return respond(as: answer, with: fetched)
        }
        var provenance = provenance
        provenance.note(fetched, at: context.moment)
        // A HEAD gets only the announced length: the body that came with the response to a HEAD is empty, whatever the
        // length of GET's (RFC 9110 §8.6).
        let length = fetched.length ?? (request.method == .head ? nil : fetched.response.bodyLength)
        respond(fetched.response(forLeader: leads), length: length, persists: persists, provenance, of: fetched) {
            answer, head in
            guard let traits else { return }
            let made = SharedAnswer(traits: traits, provenance: provenance, answer: answer, head: head.copied())
            fetched.sharedAnswer.withLock { $0 = made }
        }
    }

    /// Whether the answer can differ from those of other joined requests only in `SharedAnswer.Traits`.
    private func mayShareAnswer(of fetched: FetchedResponse) -> Bool {
        request.method == .get && !leads && request.fields.present.isDisjoint(with: .changingAnswer)
    }

    private func respond(as shared: SharedAnswer, with fetched: FetchedResponse) {
        beginResponse(shared.answer.status, shared.provenance, of: fetched)
        let head = context.scratch
        head.removeAll()
        head.append(shared.head)
        client.send(
            head, shared.answer.sources(), shared.answer.framing(for: request.head.version), passesTrailers: false)
    }

    /// - Parameters:
    ///   - persists: whether the connection outlives the response.
    ///   - fetched: the fetch's result, of which the response is part; `nil` if it was stored.
    ///   - made: called with the head before it is sent.
    func respond(
        _ response: StoredResponse, length: Int?, persists: Bool, _ provenance: Provenance,
        of fetched: FetchedResponse? = nil, made: (Answer, ByteBuffer) -> Void = { _, _ in }
    ) {
        // Read each once: a value read from a variable, or reached through two objects, is retained.
        let (request, loopSettings) = (request, context.loopSettings)
        let answer = Answer(
            request, response, length: length,
            // Not if a stored response stands in for the origin's: then the conditions and the range are for the proxy
            // to evaluate.
            isPassedThrough: unsharedFetch?.plan.isPass == true && fetched?.source == .origin,
            maxRanges: request.route.maxRanges)
        let head = context.scratch
        head.removeAll()
        beginResponse(answer.status, provenance, of: fetched)
        answer.writeHead(
            to: head, provenance: provenance, at: context.moment, persists: persists, version: request.head.version,
            forwarding: loopSettings.responseForwarding)
        made(answer, head)
        let framing = answer.framing(for: request.head.version)
        client.send(
            head, answer.sources(), framing, passesTrailers: framing == .chunked && request.acceptsTrailers)
    }

    /// Sends a synthetic response: plain text that states the problem.
    /// - Parameter upstream: the failure, if the answer reports one.
    func fail(_ answer: SyntheticResponse, detail: StaticString, upstream: UpstreamError? = nil) {
        var provenance = provenance
        provenance.verdict = .synthetic
        provenance.detail = detail
        beginResponse(answer.status, provenance)
        let head = ByteBuffer(capacity: 512)
        let content = context.loopSettings.errors.write(
            answer, to: request.head.method, request.head.version, provenance, upstream: upstream,
            persists: client.settlePersistence(),
            date: context.loop.wallClockSeconds, into: head)
        client.send(head, content, .sized, passesTrailers: false)
    }

    // MARK: Stale responses and limits

    /// Handles a limit as `when-exceeded` says.
    func meets(_ bound: Bound) {
        switch context.settings.coalescing.whenExceeded {
        case .pass:
            if case .wait(let operation) = bound {
                // A wait for another fetch would take as long again.
                if let stale = standIn(on: .timeout) { return serve(stale, detail: bound.detail) }
                return lookAgainForNext(after: operation)
            }
            fallthrough
        case .stale:
            if let stale = standIn(on: .overloaded) { return serve(stale, detail: bound.detail) }
        case .unavailable: break
        }
        if !bound.isReportedOnce { context.notices.refused(request, at: bound.detail) }
        fail(.overloaded, detail: bound.detail)
    }

    /// The stored response that may stand in, if any (RFC 9111 §4.2.4).
    func standIn(on failure: OriginFailure) -> StoredResponse? {
        hasStandIn ? context.standIn(for: request, on: failure) : nil
    }

    /// The stored response that may replace an error of the fetch that the request joined. For a leader, the fetch
    /// itself has looked for one.
    func standIn(for fetched: FetchedResponse) -> StoredResponse? {
        guard hasStandIn, let status = fetched.originStatus, status.isServerError, fetched.source == .origin,
            !leads
        else { return nil }
        return standIn(on: .status(status))
    }
}
