import Bytes
import HTTPSemantics
import Libevent
import Storage
import Telemetry

/// The hot path: a plain `GET` for something stored and fresh is answered from inside `readable()`, with one look-up and one write.
/// Nothing here allocates, makes a `String`, or asks a clock but the loop's.
extension ClientConnection {
    /// Fields with which a request is not plain: what they ask for is decided in a `Transaction`.
    static let unplain = FieldSet(
        .range, .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .cacheControl, .pragma, .authorization,
        .upgrade, .expect, .te, .cdnLoop)

    /// - Returns: false, with nothing done, when this is no plain hit.
    func answerHit(_ context: ReadContext) -> Bool {
        let head = context.parser.head
        guard head.method == .get, head.framing == .none, head.version == .http11, head.target.form == .origin else { return false }
        let (parser, buffer) = (context.parser, context.buffer)
        let fields = parser.view(in: buffer.span)
        guard fields.present.isDisjoint(with: Self.unplain), worker.runtime.serves(fields.bytes.extracting(head.authority.range)),
              let route = worker.runtime.route(head, fields), route.isCached else { return false }
        let keys = worker.keys
        keys.write(head, fields, route.key)
        return answerHit(keys, head, fields) || answerEquivalentHit(keys, head, fields)
    }

    /// Nothing is there for the URL itself: perhaps for one that differs in what does not matter (No-Vary-Search).
    @inline(never)
    private func answerEquivalentHit(_ keys: KeyWriter, _ head: RequestHead, _ fields: FieldView) -> Bool {
        let variations = worker.shared.variations
        guard !variations.isEmpty else { return false }
        let sent = keys.bytes
        guard let variation = variations.latest(for: sent.span) else { return false }
        keys.rewrite(under: variation)
        return answerHit(keys, head, fields)
    }

    /// - Returns: false when the key that was written last has no plain hit.
    @inline(__always)
    private func answerHit(_ keys: KeyWriter, _ head: RequestHead, _ fields: FieldView) -> Bool {
        let key = keys.bytes
        guard let resource = worker.shared.store.resource(hash: keys.hashed(), key: key.span),
              let stored = resource.response(matching: fields), !stored.hasGroups,
              case .fresh(let age, let ttl) = stored.facts.reuse(for: .none, at: worker.moment),
              let length = stored.bodyLength else { return false }
        stored.noteUse()
        writeHit(stored, length: length, age: age, ttl: ttl)
        worker.recordHit(stored.facts.status, head, fields, began: requestBegan, bodyBytes: length, client: peerText)
        return true
    }

    private func writeHit(_ stored: StoredResponse, length: Int, age: UInt32, ttl: UInt32) {
        let out = worker.scratch
        out.removeAll()
        out.appendStatusLine(stored.facts.status)
        out.append(stored.fieldLines)
        if !stored.facts.status.forbidsContent { out.appendField("Content-Length", UInt64(length)) }
        out.appendField("Age", UInt64(age))
        worker.runtime.responseForwarding.appendHit(timeToLive: Int64(ttl), to: out)
        if !persists { out.append("Connection: close\r\n") }
        out.appendLineEnd()
        if let body = stored.smallBody {
            // Into the same piece of memory as the head: one vector less for the kernel.
            out.append(body)
            finishHit(out, CompleteBodyReader([], part: 0..<0), write(out.span))
        } else {
            let reader = CompleteBodyReader(stored.pieces ?? [], part: 0..<length)
            worker.gather.removeAll()
            reader.gather(into: worker.gather)
            finishHit(out, reader, write(out.span, worker.gather))
            worker.gather.removeAll()
        }
    }

    private func finishHit(_ out: ByteBuffer, _ body: CompleteBodyReader, _ result: WriteResult) {
        let sent: Int
        switch result {
        case .wrote(let count): sent = count
        case .wouldBlock: sent = 0
        case .failed: return end()
        }
        worker.metrics.add(.clientBytesOut, UInt64(sent))
        let ofHead = min(sent, out.count)
        guard ofHead < out.count || sent - ofHead < body.remaining else { return hitSent() }
        // The rest goes out as the client takes it.
        out.consume(ofHead)
        let rest = ByteBuffer(capacity: max(64, out.count))
        rest.append(out.span)
        var body = body
        if sent > ofHead { body.advance(by: sent - ofHead) }
        sendRest(rest, body)
    }
}
