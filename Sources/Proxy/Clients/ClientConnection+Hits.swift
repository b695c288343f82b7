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
        .ifRange, .ifMatch, .ifUnmodifiedSince, .cacheControl, .pragma, .authorization, .upgrade, .expect, .te, .cdnLoop)

    func answerHit(_ head: RequestHead, _ fields: FieldView) -> HitOutcome {
        guard head.method == .get, head.framing == .none, head.version == .http11, head.target.form == .origin,
              fields.present.isDisjoint(with: Self.unplain) else { return .notPlain }
        let runtime = worker.runtime
        guard runtime.serves(fields.bytes.extracting(head.authority.range)), let route = runtime.route(head, fields), route.isCached
        else { return .notPlain }
        let keys = worker.keys
        keys.write(head, fields, route)
        if answerHit(keys, head, fields, runtime) { return .answered }
        guard !worker.shared.variations.isEmpty else { return .nothingFresh(route) }
        return answerEquivalentHit(keys, head, fields, runtime) ? .answered : .notPlain
    }

    /// Nothing is there for the URL itself: perhaps for one that differs in what does not matter (No-Vary-Search).
    @inline(never)
    private func answerEquivalentHit(_ keys: KeyWriter, _ head: RequestHead, _ fields: FieldView, _ runtime: Runtime) -> Bool {
        let sent = keys.bytes
        guard let variation = worker.shared.variations.latest(for: sent.span) else { return false }
        keys.rewrite(under: variation)
        return answerHit(keys, head, fields, runtime)
    }

    /// - Returns: false when the key that was written last has no plain hit.
    @inline(__always)
    private func answerHit(_ keys: KeyWriter, _ head: RequestHead, _ fields: FieldView, _ runtime: Runtime) -> Bool {
        let key = keys.bytes
        guard let resource = worker.shared.store.resource(hash: keys.hashed(), key: key.span),
              let stored = resource.response(matching: fields), !stored.hasGroups,
              case .fresh(let age, let ttl) = stored.facts.reuse(for: .none, at: worker.moment),
              let length = stored.bodyLength,
              let content = HitContent(fields, stored, length: length, maxRanges: runtime.settings.caching.maxRanges) else { return false }
        stored.noteUse()
        let out = worker.scratch
        if !holdsHits { out.removeAll() }
        content.writeHead(of: stored, length: length, to: out)
        out.appendField("Age", UInt64(age))
        runtime.responseForwarding.appendHit(timeToLive: ttl, to: out)
        if !persists { out.append("Connection: close\r\n") }
        out.appendLineEnd()
        let part = content.part(ofLength: length)
        let began = requestBegan
        sendHit(out, stored, part, head, hasMore: fields.bytes.count > head.length)
        let client = peerText
        worker.recordHit(content.status(of: stored), head, fields, began: began, bodyBytes: part.count, client: client.span)
        return true
    }

    /// Sends what `out` holds and the body behind it; or holds it back, for the hits of pipelined requests to go out in one write.
    /// - Parameter hasMore: the client has sent something behind the request.
    private func sendHit(_ out: ByteBuffer, _ stored: StoredResponse, _ part: Range<Int>, _ head: RequestHead, hasMore: Bool) {
        // The client has said that it sends nothing more, and nothing more is here.
        let isLast = head.connection.close && !hasMore
        if let body = stored.smallBody {
            // Into the same piece of memory as the head: one vector less for the kernel.
            out.append(body.span.extracting(part))
            if hasMore, persists, out.count < Self.mostHeld {
                holdsHits = true
                requestBegan = 0
                return
            }
            finishHit(out, CompleteBodyReader([], part: 0..<0), write(out.span), isLast)
        } else {
            let reader = CompleteBodyReader(stored.pieces ?? [], part: part)
            if reader.remaining >= Delivery.largeBody { boundSendQueue() }
            let gather = worker.gather
            gather.removeAll()
            reader.gather(into: gather)
            finishHit(out, reader, write(out.span, gather), isLast)
            gather.removeAll()
        }
    }

    /// Bytes of hits that go out in one write.
    private static let mostHeld = 24 << 10

    /// Sends the hits that were held back. Where the client does not take all of them, or is gone, the connection is not `reading` afterwards.
    func sendHeldHits() {
        guard holdsHits else { return }
        // Only on a connection that is kept are hits held back, whatever the request behind them says.
        let keepsAliveThen = keepsAlive
        keepsAlive = true
        let out = worker.scratch
        finishHit(out, CompleteBodyReader([], part: 0..<0), write(out.span), false)
        if phase == .reading { keepsAlive = keepsAliveThen }
    }

    private func finishHit(_ out: ByteBuffer, _ body: CompleteBodyReader, _ result: WriteResult, _ isLast: Bool) {
        holdsHits = false
        let sent: Int
        switch result {
        case .wrote(let count): sent = count
        case .wouldBlock: sent = 0
        case .failed: return end()
        }
        worker.metrics.add(.clientBytesOut, UInt64(sent))
        let ofHead = min(sent, out.count)
        guard ofHead < out.count || sent - ofHead < body.remaining else { return hitSent(isLast: isLast) }
        // The rest goes out as the client takes it.
        out.consume(ofHead)
        let rest = ByteBuffer(capacity: max(64, out.count))
        rest.append(out.span)
        var body = body
        if sent > ofHead { body.advance(by: sent - ofHead) }
        sendRest(rest, body)
    }
}

/// Whether the hot path answered a request.
enum HitOutcome {
    case answered
    /// What there is to know about the request is still to be found out.
    case notPlain
    /// Nothing under its key may answer it just so. `Worker.keys` still holds that key, and this is its route.
    case nothingFresh(Route)
}

/// What a hit sends of a stored response.
private enum HitContent {
    case whole
    /// 206 with one range.
    case part(Range<Int>)
    /// With the fields it tells some of.
    case notModified(HeadBlock)

    /// Fields for which it may be less than the whole.
    static let conditional = FieldSet(.ifNoneMatch, .ifModifiedSince, .range)

    /// `nil` where a `Transaction` is to decide: several ranges, or one that is not there.
    init?(_ asked: FieldView, _ stored: StoredResponse, length: Int, maxRanges: Int) {
        guard !asked.present.isDisjoint(with: Self.conditional) else { self = .whole; return }
        if ClientConditions.apply(to: asked) {
            let own = stored.head
            if ClientConditions.evaluate(asked, stored: own.view, facts: stored.facts) == .notModified { self = .notModified(own); return }
        }
        guard asked.contains(.range), stored.facts.status == .ok else { self = .whole; return }
        guard maxRanges > 0, let range = RangeRequest.single(asked, length: length) else { return nil }
        self = .part(range)
    }

    func status(of stored: StoredResponse) -> Status {
        switch self {
        case .whole: stored.facts.status
        case .part: .partialContent
        case .notModified: .notModified
        }
    }

    func part(ofLength length: Int) -> Range<Int> {
        switch self {
        case .whole: 0..<length
        case .part(let range): range
        case .notModified: 0..<0
        }
    }

    /// Status line and fields up to `Content-Length`, as an `Answer` writes them.
    func writeHead(of stored: StoredResponse, length: Int, to out: ByteBuffer) {
        let status = status(of: stored)
        out.appendStatusLine(status)
        switch self {
        case .whole:
            out.append(stored.fieldLines)
            if !status.forbidsContent { out.appendField("Content-Length", UInt64(length)) }
        case .part(let range):
            out.append(stored.fieldLines)
            out.appendName("Content-Range")
            ContentRange.part(range, of: length).write(to: out)
            out.appendLineEnd()
            out.appendField("Content-Length", UInt64(range.count))
        case .notModified(let own):
            out.appendFields(own.view, connection: ConnectionOptions(), dropping: .omittedFromNotModified(own.view))
        }
    }
}
