import Bytes
import HTTPSemantics
import Libevent
import Storage
import Telemetry

/// The hot path: a plain `GET` with a fresh stored response is answered as soon as it is parsed, mostly with one
/// look-up and one write. This code makes no `String`, reads no clock but the loop's, and allocates only the stored
/// fields for a conditional request.
///
/// One per worker and settings, on the worker's loop. The worker holds the same references. This class holds them
/// again, because a reference reached through another object is retained and released at each use, with two atomic
/// instructions; a reference in `self` is not.
final class HitPath {
    /// The result of `answer`.
    enum Outcome {
        case answered
        /// The request was not looked up: its route and key are still unknown, and `Worker.keys` may hold another key.
        case undecided
        /// No stored response can be sent without a transaction. `Worker.keys` still holds the request's key; this is
        /// its route.
        case nothingFresh(Route)
    }

    private let loopSettings: LoopSettings
    /// The route of all requests, if there is only one.
    private let onlyRoute: Route?
    private let forwarding: ResponseForwarding
    private let maxRanges: Int
    private let trustsProxies: Bool
    private let store: ResponseStore
    private let variations: SearchVariations
    private let loop: EventLoop
    private let keys: KeyWriter
    private let round: ServingRound
    /// The buffer of `round`.
    private let buffer: ByteBuffer
    private let gatherList: GatherList
    private let recorder: Recorder

    /// - Parameter gatherList: used to write bodies from the store's memory without a copy.
    init(
        loopSettings: LoopSettings, shared: SharedState, loop: EventLoop, keys: KeyWriter, round: ServingRound,
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
        self.round = round
        buffer = round.buffer
        self.gatherList = gatherList
        self.recorder = recorder
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

    /// The exact URL has no plain hit: look up the equivalent URL, which differs only in parts of the query that
    /// `No-Vary-Search` excludes.
    @inline(never) // Rare: kept out of the code of plain hits.
    private func answerEquivalent(
        _ head: RequestHead, _ fields: FieldView, on route: Route, to client: ClientConnection
    ) -> Bool {
        let sent = keys.bytes
        guard let variation = variations.latest(for: sent.span) else { return false }
        let own = keys.response(in: store, matching: fields)
        keys.rewrite(under: variation)
        // The response stored for the exact URL may be preferred even though it is no plain hit.
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
        let start = buffer.count
        content.writeHead(of: stored, length: length, to: buffer)
        buffer.appendField("Age", UInt64(age))
        forwarding.appendHit(timeToLive: ttl, to: buffer)
        if !client.persists { buffer.append("Connection: close\r\n") }
        buffer.appendLineEnd()
        let part = content.part(ofLength: length)
        let began = client.input.requestBegan
        let outcome = send(
            stored, part, behind: start, to: client, closes: head.connection.close,
            hasMore: fields.bytes.count > head.length)
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
        /// All of it is sent, or it is pending and sent later.
        case sent
        /// The rest is sent as the client takes it.
        case begun(contentInHead: Int)
        case failed
    }

    /// Sends the head, which is `buffer` from `start` on, and `part` of the body; or leaves both pending, to be written
    /// with other hits.
    /// - Parameters:
    ///   - closes: whether the request has `Connection: close`.
    ///   - hasMore: whether bytes follow the request in the buffer.
    private func send(
        _ stored: StoredResponse, _ part: Range<Int>, behind start: Int, to client: ClientConnection, closes: Bool,
        hasMore: Bool
    ) -> Sent {
        let (out, isLast) = (buffer, closes && !hasMore)
        let progress: ServingRound.Progress
        let contentInHead: Int
        // A small body is copied behind the head: one vector less for the kernel.
        if stored.appendPacked(part, to: out) {
            if client.persists, !isLast, round.holds(client, from: start, hasMore: hasMore) { return .sent }
            contentInHead = part.count
            let share = (client.takeHeldHits()?.lowerBound ?? start)..<out.count
            progress = round.noteSent(
                client.write(out.span.extracting(share)), of: share, to: client, isLast: isLast,
                keepsAlive: client.output.keepsAlive)
            round.forget(share)
        } else {
            contentInHead = 0
            let reader = CompleteBodyReader(stored.pieces ?? ShortList(), part: part)
            if reader.remaining >= Delivery.largeBody { client.boundSendQueue() }
            gatherList.removeAll()
            reader.gather(into: gatherList)
            defer { gatherList.removeAll() }
            let share = (client.takeHeldHits()?.lowerBound ?? start)..<out.count
            progress = round.noteSent(
                client.write(out.span.extracting(share), gatherList), of: share, reader, of: stored, to: client,
                isLast: isLast, keepsAlive: client.output.keepsAlive)
            round.forget(share)
        }
        return switch progress {
        case .whole: .sent
        case .begun: .begun(contentInHead: contentInHead)
        case .failed: .failed
        }
    }
}
