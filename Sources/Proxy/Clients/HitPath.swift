import Bytes
import HTTPSemantics
import Libevent
import Storage
import Telemetry

/// The hot path: a plain `GET` for something stored and fresh is answered from inside `ClientConnection.readable()`,
/// mostly with one look-up and one write. Nothing here makes a `String` or reads another clock than the loop's, and
/// nothing allocates, except the stored fields when a request is conditional.
///
/// One per worker and settings, on the worker's loop. The worker has all of this too; it stands here again because a
/// reference that is reached through another object is retained while it is in use, in two atomic instructions, and one
/// that the object at work holds itself is not.
final class HitPath {
    /// Whether it answered a request.
    enum Outcome {
        case answered
        /// Not examined: its route and key are still unknown, and `Worker.keys` may hold another key.
        case undecided
        /// No stored response can answer it as it is. `Worker.keys` still holds its key, and this is its route.
        case nothingFresh(Route)
    }

    private let loopSettings: LoopSettings
    /// Where all requests go, if there is no choice.
    private let onlyRoute: Route?
    private let forwarding: ResponseForwarding
    private let maxRanges: Int
    private let trustsProxies: Bool
    private let store: ResponseStore
    private let variations: SearchVariations
    private let loop: EventLoop
    private let keys: KeyWriter
    private let output: ByteBuffer
    private let gatherList: GatherList
    private let recorder: Recorder
    private let metrics: LoopMetrics
    /// Whether `output` is a batch: hits of pipelined requests, still to be sent. Only while requests are taken out of
    /// their client's buffer.
    private var hasBatch = false
    /// After so many bytes of hits a batch is sent.
    private static let mostBatched = 24 << 10

    /// - Parameters:
    ///   - output: where responses are put together.
    ///   - gatherList: for bodies that are sent from where they are stored.
    init(
        loopSettings: LoopSettings, shared: SharedState, loop: EventLoop, keys: KeyWriter, output: ByteBuffer,
        gatherList: GatherList, recorder: Recorder
    ) {
        self.loopSettings = loopSettings
        onlyRoute = loopSettings.onlyRoute
        forwarding = loopSettings.responseForwarding
        maxRanges = loopSettings.settings.caching.maxRanges
        trustsProxies = loopSettings.trustsProxies
        store = shared.store
        variations = shared.variations
        self.loop = loop
        self.keys = keys
        self.output = output
        self.gatherList = gatherList
        self.recorder = recorder
        metrics = recorder.metrics
    }

    /// Answers the request at the front of `client`'s buffer if it is a plain hit.
    func answer(_ head: RequestHead, _ fields: FieldView, to client: ClientConnection) -> Outcome {
        guard head.method == .get, head.framing == .none, head.version == .http11, head.target.form == .origin,
            fields.present.isDisjoint(with: .notOfPlainHits)
        else { return .undecided }
        if let onlyRoute { return answer(head, fields, on: onlyRoute, to: client) }
        guard loopSettings.serves(fields.bytes.extracting(head.authority.range)) else { return .undecided }
        return answer(head, fields, on: loopSettings.route(head, fields), to: client)
    }

    @inline(__always)
    private func answer(_ head: RequestHead, _ fields: FieldView, on route: Route, to client: ClientConnection)
        -> Outcome
    {
        guard route.isCached, !route.hasPassCookie(fields) else { return .undecided }
        let isTrusted = client.isTrustedProxy && trustsProxies
        keys.write(head, fields, ClientScheme(of: fields, isFromTrustedProxy: isTrusted), route)
        if answerWritten(head, fields, on: route, to: client) { return .answered }
        guard !variations.isEmpty else { return .nothingFresh(route) }
        return answerEquivalent(head, fields, on: route, to: client) ? .answered : .undecided
    }

    /// The URL itself has no plain hit: perhaps one that differs in what does not matter has (No-Vary-Search).
    @inline(never) // Rare: not in the way of plain hits.
    private func answerEquivalent(
        _ head: RequestHead, _ fields: FieldView, on route: Route, to client: ClientConnection
    ) -> Bool {
        let sent = keys.bytes
        guard let variation = variations.latest(for: sent.span) else { return false }
        let own = keys.response(in: store, matching: fields)
        keys.rewrite(under: variation)
        // What is stored for the exact URL may be what is to be sent even if it is no plain hit.
        if let own, let common = keys.response(in: store, matching: fields),
            own.facts.goesBefore(common.facts, for: .none, at: Moment(monotonic: loop.now, wall: loop.wallClockSeconds))
        {
            return false
        }
        return answerWritten(head, fields, on: route, to: client)
    }

    /// - Returns: false when the key that was written last has no plain hit.
    private func answerWritten(_ head: RequestHead, _ fields: FieldView, on route: Route, to client: ClientConnection)
        -> Bool
    {
        guard let stored = keys.response(in: store, matching: fields), stored.groups == nil,
            case .fresh(let age, let ttl) = stored.facts.reuse(
                for: .none, at: Moment(monotonic: loop.now, wall: loop.wallClockSeconds)),
            let length = stored.bodyLength,
            let content = HitContent.of(stored, length: length, for: fields, maxRanges: maxRanges)
        else { return false }
        stored.noteUse()
        if !hasBatch { output.removeAll() }
        content.writeHead(of: stored, length: length, to: output)
        output.appendField("Age", UInt64(age))
        forwarding.appendHit(timeToLive: ttl, to: output)
        if !client.persists { output.append("Connection: close\r\n") }
        output.appendLineEnd()
        let part = content.part(ofLength: length)
        let began = client.input.requestBegan
        let outcome = send(
            stored, part, to: client, closes: head.connection.close, hasMore: fields.bytes.count > head.length)
        let status = content.status(of: stored)
        let (peer, isProxied) = (client.peerText, client.isTrustedProxy)
        let sent: SentResponse
        switch outcome {
        case .sent:
            sent = SentResponse(
                status: status, isAborted: false, began: began, firstByte: loop.now, bodyBytes: UInt64(part.count),
                isProxied: isProxied)
        case .begun(let contentInHead):
            client.logWhenOut(
                AnsweredRequest(
                    status, .hit, route.upstreamMetrics, head, HeadBlock(copying: fields), contentInHead: contentInHead)
            )
            return true
        case .failed:
            sent = SentResponse(
                status: nil, isAborted: true, began: began, firstByte: 0, bodyBytes: 0, isProxied: isProxied)
        }
        recorder.recordHit(sent, of: head, fields, on: route, client: peer.span)
        return true
    }

    // MARK: Sending

    private enum Sent {
        /// All of it, or it is in a batch and goes out later.
        case sent
        /// The rest goes out as the client takes it.
        case begun(contentInHead: Int)
        case failed
    }

    /// Sends what `output` holds and `part` of the body behind it; or makes it one of a batch, for the hits of
    /// pipelined requests to go out in one write.
    /// - Parameters:
    ///   - closes: the client has said that this is its last request.
    ///   - hasMore: it has sent something behind the request.
    private func send(
        _ stored: StoredResponse, _ part: Range<Int>, to client: ClientConnection, closes: Bool, hasMore: Bool
    ) -> Sent {
        let (out, isLast) = (output, closes && !hasMore)
        // A small one goes into the same piece of memory as the head: one vector less for the kernel.
        if stored.appendPacked(part, to: out) {
            if hasMore, client.persists, out.count < Self.mostBatched {
                hasBatch = true
                client.hitBatched()
                return .sent
            }
            return finish(
                CompleteBodyReader(ShortList(), part: 0..<0), client.write(out.span), to: client, isLast: isLast,
                keepsAlive: client.output.keepsAlive, contentInHead: part.count)
        } else {
            let reader = CompleteBodyReader(stored.pieces ?? ShortList(), part: part)
            if reader.remaining >= Delivery.largeBody { client.boundSendQueue() }
            gatherList.removeAll()
            reader.gather(into: gatherList)
            defer { gatherList.removeAll() }
            return finish(
                reader, of: stored, client.write(out.span, gatherList), to: client, isLast: isLast,
                keepsAlive: client.output.keepsAlive)
        }
    }

    /// Sends the batch, if there is one. Afterwards `client` is still `reading` only if it has taken all of them.
    func sendBatch(to client: ClientConnection) {
        guard hasBatch else { return }
        let out = output
        // There is a batch only on a connection that persists; `keepsAlive` is by now what the request behind them
        // says.
        _ = finish(
            CompleteBodyReader(ShortList(), part: 0..<0), client.write(out.span), to: client, isLast: false,
            keepsAlive: true)
    }

    /// - Parameters:
    ///   - stored: whose body it is, unless that is none or stands in `output`.
    ///   - isLast: the client sends nothing more.
    ///   - mayPersist: whether another request may come behind what `output` answers.
    private func finish(
        _ body: CompleteBodyReader, of stored: StoredResponse? = nil, _ result: WriteResult,
        to client: ClientConnection, isLast: Bool,
        keepsAlive mayPersist: Bool, contentInHead: Int = 0
    ) -> Sent {
        hasBatch = false
        let sent: Int
        switch result {
        case .wrote(let count): sent = count
        case .wouldBlock: sent = 0
        case .failed:
            client.end()
            return .failed
        }
        guard sent < output.count + body.remaining else {
            metrics.add(.clientBytesOut, UInt64(sent))
            client.hitSent(isLast: isLast, keepsAlive: mayPersist)
            return .sent
        }
        client.sendRest(output, stored.map { body.reading($0) } ?? body, after: sent, keepsAlive: mayPersist)
        return .begun(contentInHead: contentInHead)
    }
}
