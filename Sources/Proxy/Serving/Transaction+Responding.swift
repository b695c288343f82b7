import Bytes
import HTTPSemantics
import Libevent
import Storage
import Telemetry
import Upstream

/// From a response, stored or fetched or our own, to the head that the client gets.
extension Transaction {
    func serve(_ stored: StoredResponse, _ reuse: Reuse, detail: StaticString? = nil) {
        provenance.note(stored, reuse, detail: detail, at: worker.moment)
        state = .responding(nil)
        stored.noteUse()
        respond(stored, length: stored.bodyLength)
    }

    func respond(_ fetched: FetchedResponse) {
        provenance.note(fetched, at: worker.moment)
        // To HEAD only what was announced: the body that came with the answer to a HEAD is empty, whatever GET's is (RFC 9110 §8.6).
        let length = fetched.length ?? (request.method == .head ? nil : fetched.response.bodyLength)
        respond(fetched.response(for: request), length: length)
    }

    private func respond(_ response: StoredResponse, length: Int?) {
        let answer = Answer(
            request, response, length: length, isOwn: ownFetch?.plan.isTransparent == true,
            maxRanges: request.route.policy.maxRanges)
        let head = worker.scratch
        head.removeAll()
        status = answer.status.code
        answer.writeHead(
            to: head, provenance: provenance, at: worker.moment, persists: client.persists, version: request.head.version,
            forwarding: worker.runtime.responseForwarding)
        client.send(head, answer.source(), answer.framing(for: request.head.version), passesTrailers: request.acceptsTrailers)
    }

    /// Answers by ourselves, in plain text that says what was wrong.
    func fail(_ status: Status, _ explanation: StaticString, detail: StaticString, upstream: UpstreamError? = nil) {
        deadline.clear()
        state = .responding(nil)
        self.status = status.code
        provenance.verdict = .synthetic
        provenance.detail = detail
        let head = ByteBuffer(capacity: 512)
        let content = worker.errors.write(
            status, explanation, provenance: provenance, upstream: upstream, persists: client.persists,
            version: request.head.version, date: worker.loop.wallClockSeconds, isHead: request.method == .head, to: head)
        client.send(head, content, .sized, passesTrailers: false)
    }
}
