import Bytes
import HTTPSemantics
import Libevent
import Storage
import Telemetry
import Upstream

/// From a response, stored or fetched or our own, to the head that the client gets.
extension Transaction {
    func serve(_ stored: StoredResponse, _ reuse: Reuse, detail: StaticString? = nil) {
        // In a local variable nothing watches its exclusive use at run time; the same in `respond`.
        var provenance = provenance
        provenance.note(stored, reuse, detail: detail, at: worker.moment)
        self.provenance = provenance
        stored.noteUse()
        respond(stored, length: stored.bodyLength, persists: client.settlePersistence())
    }

    func respond(_ fetched: FetchedResponse) {
        self.fetched = fetched
        let persists = client.settlePersistence()
        let traits = mayShareAnswer(of: fetched) ? SharedAnswer.Traits(fetched, self, persists: persists) : nil
        if let traits, let answer = fetched.sharedAnswer.withLock({ $0 }), answer.traits == traits {
            return respond(as: answer)
        }
        var provenance = provenance
        provenance.note(fetched, at: worker.moment)
        self.provenance = provenance
        // To HEAD only what was announced: the body that came with the answer to a HEAD is empty, whatever GET's is
        // (RFC 9110 §8.6).
        let length = fetched.length ?? (request.method == .head ? nil : fetched.response.bodyLength)
        respond(fetched.response(for: request), length: length, persists: persists) { answer, head in
            guard let traits else { return }
            let made = SharedAnswer(traits: traits, provenance: provenance, answer: answer, head: head.copied())
            fetched.sharedAnswer.withLock { $0 = made }
        }
    }

    /// Whether its answer can differ from those of others who joined only in `SharedAnswer.Traits`.
    private func mayShareAnswer(of fetched: FetchedResponse) -> Bool {
        request.method == .get && request !== fetched.leader
            && request.fields.present.isDisjoint(with: SharedAnswer.changingAnswer)
    }

    private func respond(as shared: SharedAnswer) {
        provenance = shared.provenance
        beginResponse(shared.answer.status)
        let head = worker.scratch
        head.removeAll()
        head.append(shared.head)
        client.send(
            head, shared.answer.sources(), shared.answer.framing(for: request.head.version), passesTrailers: false)
    }

    /// - Parameters:
    ///   - persists: whether the connection outlives the response.
    ///   - made: what is done with the head before it is sent.
    func respond(
        _ response: StoredResponse, length: Int?, persists: Bool, made: (Answer, ByteBuffer) -> Void = { _, _ in }
    ) {
        // Once each: what is read from a variable, or reached through two objects, is retained.
        let (request, loopSettings) = (request, worker.loopSettings)
        let answer = Answer(
            request, response, length: length, isPassedThrough: unsharedFetch?.plan.isPass == true,
            maxRanges: request.route.maxRanges)
        let head = worker.scratch
        head.removeAll()
        beginResponse(answer.status)
        answer.writeHead(
            to: head, provenance: provenance, at: worker.moment, persists: persists, version: request.head.version,
            forwarding: loopSettings.responseForwarding)
        made(answer, head)
        client.send(
            head, answer.sources(), answer.framing(for: request.head.version), passesTrailers: request.acceptsTrailers)
    }

    /// Gives an answer of our own: plain text that says what was wrong.
    /// - Parameter upstream: what failed, if the answer stands for that.
    func fail(_ answer: OwnAnswer, detail: StaticString, upstream: UpstreamError? = nil) {
        deadline.clear()
        beginResponse(answer.status)
        provenance.verdict = .synthetic
        provenance.detail = detail
        let head = ByteBuffer(capacity: 512)
        let content = worker.loopSettings.errors.write(
            answer, to: request.head, provenance, upstream: upstream, persists: client.settlePersistence(),
            date: worker.loop.wallClockSeconds, into: head)
        client.send(head, content, .sized, passesTrailers: false)
    }
}
