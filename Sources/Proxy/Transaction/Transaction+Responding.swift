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
        let traits = traitsOfAnswer(with: fetched, persists: persists)
        if let traits, let shared = fetched.sharedAnswer, shared.traits == traits {
            return send(shared.answer, shared.provenance, of: fetched) { $0.append(shared.head) }
        }
        var provenance = provenance
        provenance.note(fetched, at: context.moment)
        // A HEAD gets only the announced length: the body that came with the response to a HEAD is empty, whatever the
        // length of GET's (RFC 9110 §8.6).
        let length = fetched.length ?? (request.method == .head ? nil : fetched.response.bodyLength)
        respond(
            fetched.response(forLeader: leads), length: length, persists: persists, provenance, of: fetched,
            sharedAs: traits)
    }

    /// The traits in which the answer can differ from those of other joined requests; `nil` if it can differ in more.
    private func traitsOfAnswer(with fetched: FetchedResponse, persists: Bool) -> SharedAnswer.Traits? {
        guard !leads, request.mayShareAnswer else { return nil }
        let (now, facts) = (context.moment, fetched.response.facts)
        return SharedAnswer.Traits(
            role: provenance.role, forwarded: provenance.forwarded, version: request.head.version, persists: persists,
            length: fetched.length ?? fetched.response.bodyLength, age: facts.age(at: now),
            timeToLive: facts.timeToLive(at: now), settings: context.loopSettings.number)
    }

    /// - Parameters:
    ///   - persists: whether the connection outlives the response.
    ///   - fetched: the fetch's result, of which the response is part; `nil` if it was stored.
    ///   - traits: the properties of the requests that get the same answer, which is kept for them; `nil`: of none.
    func respond(
        _ response: consuming StoredResponse, length: Int?, persists: Bool, _ provenance: Provenance,
        of fetched: FetchedResponse? = nil, sharedAs traits: SharedAnswer.Traits? = nil
    ) {
        // Read once: a value read from a variable is retained.
        let request = request
        let answer = Answer(
            request, response, length: length,
            // Not if a stored response stands in for the origin's: then the conditions and the range are for the proxy
            // to evaluate.
            isPassedThrough: unsharedFetch?.plan.isPass == true && fetched?.source == .origin,
            maxRanges: request.route.maxRanges
        ).withErrorPage(of: request.route, to: request.method)
        send(answer, provenance, of: fetched) { head in
            answer.writeHead(
                to: head, provenance: provenance, at: context.moment, persists: persists,
                version: request.head.version, forwarding: context.loopSettings.responseForwarding)
            if request.route.rules != nil {
                context.applyRules(in: head, to: answer, provenance, for: request, from: arrival)
            }
            guard let fetched, let traits else { return }
            fetched.sharedAnswer = SharedAnswer(
                traits: traits, provenance: provenance, answer: answer, head: head.copied())
        }
    }

    @inline(__always) // Two callers, of which one serves whole groups.
    private func send(
        _ answer: Answer, _ provenance: Provenance, of fetched: FetchedResponse?, _ writeHead: (ByteBuffer) -> Void
    ) {
        beginResponse(answer.status, provenance, of: fetched)
        let head = context.scratch
        head.removeAll()
        writeHead(head)
        let framing = answer.framing(for: request.head.version)
        client.send(
            head, answer.sources(), framing, passesTrailers: framing != .sized && request.acceptsTrailers)
    }

    /// Sends a synthetic response: plain text that states the problem.
    /// - Parameter upstream: the failure, if the answer reports one.
    func fail(_ answer: SyntheticResponse, detail: StaticString, upstream: UpstreamError? = nil) {
        var provenance = provenance
        provenance.verdict = .synthetic
        provenance.detail = detail
        beginResponse(answer.status, provenance)
        let head = ByteBuffer(capacity: 512)
        let content = context.write(
            answer.on(request.route), to: request.method, request.head.version, provenance, upstream: upstream,
            persists: client.settlePersistence(), into: head)
        context.applyRules(
            in: head, status: answer.status, provenance.verdict, for: request, from: arrival, isMadeHere: true)
        client.send(head, content, .sized, passesTrailers: false)
    }

    // MARK: Stale responses and limits

    /// Handles a limit as `when-exceeded` says.
    func meets(_ bound: Bound) {
        if case .memory = bound { context.notices.overloaded(context.shared) }
        switch context.settings.coalescing.whenExceeded {
        case .pass:
            if case .wait(let operation?) = bound {
                // A wait for another fetch would take as long again.
                if let stale = standIn(on: .timeout) { return serve(stale, detail: bound.detail) }
                return lookAgainForNext(after: operation)
            }
            fallthrough
        case .stale:
            if let stale = standIn(on: .overloaded) { return serve(stale, detail: bound.detail) }
        case .unavailable: break
        }
        switch bound {
        // The operator was told of the limit itself.
        case .memory: break
        case .refusal, .wait: context.notices.refused(request, at: bound.detail)
        }
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
