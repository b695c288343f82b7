import Bytes
import HTTP2
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry

/// The hot path: a plain `GET` with a fresh stored response is answered as soon as it is parsed, mostly with one
/// look-up. This code makes no `String`, reads no clock but the loop's, and allocates only the stored fields for a
/// conditional request. It writes the response into the output of the batch, and leaves the rest to the connection.
///
/// One for each loop and its settings, confined to the loop. `LoopContext` holds the same references. This class holds
/// them again, because a reference reached through another object is retained and released at each use, with two atomic
/// instructions; a reference in `self` is not.
final class HitPath {
    /// The result of `answer`.
    enum Outcome {
        /// The response is at the end of the output, where it waits to be written with others. It is recorded as sent.
        case pending
        /// The response's head is at the end of the output, to be written now. Then the caller records the hit.
        case ready(Hit)
        /// The request needs a transaction. With its route, if `LoopContext.keys` still holds the request's key; it
        /// may hold another key otherwise.
        case needsTransaction(Route?)
    }

    /// A response to be written now.
    struct Hit {
        let stored: StoredResponse
        let status: Status
        /// The part of the body that the client gets.
        let part: Range<Int>
        /// Whether that part is in the output, behind the head.
        let isInOutput: Bool
        let route: Route
        /// The identifier that was made for the request; `none` if none was.
        let madeID: RequestID
    }

    /// How the response to a request may be sent.
    struct Sending {
        /// Whether the connection persists after the request.
        let persists: Bool
        /// Where the client's pending responses begin in the output.
        let start: Int
        /// Whether the client's responses may wait for the responses of other clients.
        let waits: Bool
        /// Whether bytes of the client follow the request.
        let hasMore: Bool
        /// Whether the client speaks HTTP/2: its head is put into `fieldList`, and its body is not in the output.
        var isFramed = false

        static let framed = Sending(persists: true, start: 0, waits: false, hasMore: true, isFramed: true)
    }

    /// The most bytes pending in the output for all clients, and for one client that pipelines. With the next hit they
    /// are written at once: so the output holds at most twice as much, and one response.
    private static let mostPending = 24 << 10

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
    private let output: ByteBuffer
    private let recorder: Recorder
    /// For what hits on routes with rules need beside the above.
    private let context: LoopContext
    private let requestIDs: RequestIDs
    /// The fields of the last response to a client of HTTP/2.
    private let fieldList: FieldList
    /// The memory of the last normalized head, which is used during one call of `answer` only.
    private var normalizedHead: Chunk?

    /// - Parameter output: of the batch.
    init(in context: LoopContext, output: ByteBuffer, _ fieldList: FieldList) {
        self.fieldList = fieldList
        loopSettings = context.loopSettings
        onlyRoute = loopSettings.onlyRoute
        forwarding = loopSettings.responseForwarding
        maxRanges = loopSettings.settings.caching.maxRanges
        trustsProxies = loopSettings.trustsProxies
        store = context.store
        variations = context.variations
        loop = context.loop
        keys = context.keys
        self.output = output
        recorder = context.recorder
        self.context = context
        requestIDs = context.requestIDs
    }

    /// Answers the request at the front of the client's buffer if it is a plain hit.
    /// - Parameter fields: of the request, with all bytes of the buffer.
    func answer(_ head: RequestHead, _ fields: FieldView, of client: ClientTransport, _ sending: Sending) -> Outcome {
        guard head.method == .get, head.framing == .none, head.version != .http10, head.target.form == .origin,
            fields.present.isDisjoint(with: .notOfPlainHits)
        else { return .needsTransaction(nil) }
        // `LoopContext.admit` compares the name of the handshake with the host.
        if let security = client.security, security.asksForCertificates { return .needsTransaction(nil) }
        let scheme = ClientScheme(
            of: fields, isFromTrustedProxy: client.isTrustedProxy && trustsProxies, isSecure: client.isSecure)
        if let onlyRoute { return answer(head, fields, scheme, on: onlyRoute, of: client, sending) }
        guard loopSettings.serves(fields.bytes.extracting(head.authority.range)) else { return .needsTransaction(nil) }
        return answer(head, fields, scheme, on: loopSettings.route(head, fields, scheme), of: client, sending)
    }

    @inline(__always)
    private func answer(
        _ head: RequestHead, _ fields: FieldView, _ scheme: ClientScheme, on route: Route, of client: ClientTransport,
        _ sending: Sending
    ) -> Outcome {
        guard route.hasPlainHits, !route.hasPassCookie(fields) else {
            return answerByRules(head, fields, scheme, on: route, of: client, sending)
        }
        keys.write(head, fields, scheme, route)
        if let hit = answerWritten(head, fields, on: route, of: client, sending) { return hit }
        guard !variations.isEmpty else { return .needsTransaction(route) }
        return answerEquivalent(head, fields, on: route, of: client, sending) ?? .needsTransaction(nil)
    }

    /// Answers a request on a route with rules, or whose responses are not stored. The steps are in the order that the
    /// manual draws.
    @inline(never) // Kept out of the code of plain hits.
    private func answerByRules(
        _ head: RequestHead, _ fields: FieldView, _ scheme: ClientScheme, on route: Route, of client: ClientTransport,
        _ sending: Sending
    ) -> Outcome {
        guard route.isCached, let rules = route.rules else { return .needsTransaction(nil) }
        // `LoopContext.admit` answers.
        if rules.ownAnswer != nil { return .needsTransaction(route) }
        // `LoopContext.admit` applies the rules of each.
        guard loopSettings.routesOfOtherSpellings(head, fields, scheme, besides: route).isEmpty else {
            return .needsTransaction(nil)
        }
        guard
            let normalized = rules.normalization?.head(of: fields, length: head.length, reusing: normalizedHead)
        else { return answerNormalized(head, fields, scheme, on: route, by: rules, of: client, sending) }
        normalizedHead = normalized.bytes.chunk
        return answerNormalized(head, normalized.view, scheme, on: route, by: rules, of: client, sending)
    }

    /// - Parameter fields: normalized.
    private func answerNormalized(
        _ head: RequestHead, _ fields: FieldView, _ scheme: ClientScheme, on route: Route, by rules: RouteRules,
        of client: ClientTransport, _ sending: Sending
    ) -> Outcome {
        keys.write(head, fields, scheme, route)
        guard !route.hasPassCookie(fields) else { return .needsTransaction(route) }
        if let hit = answerWritten(head, fields, on: route, by: rules, of: client, sending) { return hit }
        guard !variations.isEmpty else { return .needsTransaction(route) }
        if let hit = answerEquivalent(head, fields, on: route, by: rules, of: client, sending) { return hit }
        keys.write(head, fields, scheme, route)
        return .needsTransaction(route)
    }

    /// The exact URL has no plain hit: look up the equivalent URL, which differs only in parts of the query that
    /// `No-Vary-Search` excludes.
    @inline(never) // Rare: kept out of the code of plain hits.
    private func answerEquivalent(
        _ head: RequestHead, _ fields: FieldView, on route: Route, by rules: RouteRules? = nil,
        of client: ClientTransport, _ sending: Sending
    ) -> Outcome? {
        let sent = keys.bytes
        guard let variation = variations.latest(for: sent.span) else { return nil }
        let own = keys.response(in: store, matching: fields)
        keys.rewrite(under: variation)
        // The response stored for the exact URL may be preferred even though it is no plain hit.
        if let own, let common = keys.response(in: store, matching: fields),
            own.facts.goesBefore(common.facts, for: .none, at: Moment(monotonic: loop.now, wall: loop.wallClockSeconds))
        {
            return nil
        }
        return answerWritten(head, fields, on: route, by: rules, of: client, sending)
    }

    /// - Returns: `nil` if the key that was written last has no plain hit.
    private func answerWritten(
        _ head: RequestHead, _ fields: FieldView, on route: Route, by rules: RouteRules? = nil,
        of client: ClientTransport, _ sending: Sending
    ) -> Outcome? {
        guard let found = keys.response(in: store, matching: fields),
            case .fresh(let age, let ttl) = found.facts.reuse(
                for: .none, at: Moment(monotonic: loop.now, wall: loop.wallClockSeconds)),
            let length = found.bodyLength,
            let answer = Answer(hit: found, length: length, for: fields, maxRanges: maxRanges)
        else { return nil }
        // A transaction replaces the content. `LoopContext.admit` refuses the request.
        if let rules, rules.errorPage(for: answer.status) != nil || isRefused(fields, by: rules, of: client) {
            return nil
        }
        answer.response.noteUse()
        if sending.isFramed {
            return framed(answer, age: age, timeToLive: ttl, head, fields, on: route, by: rules, of: client)
        }
        let start = output.count
        answer.writeHead(
            ofHitAt: age, timeToLive: ttl, to: output, persists: sending.persists, forwarding: forwarding)
        var madeID = RequestID.none
        if let rules { madeID = apply(rules, toHeadFrom: start, answer.status, head, fields, of: client) }
        let (status, part) = (answer.status, answer.hitPart)
        // A small body is copied behind the head: one vector less for the kernel.
        let isInOutput = answer.response.appendPacked(part, to: output)
        guard isInOutput, mayWait(sending) else {
            return .ready(
                Hit(
                    stored: answer.response, status: status, part: part, isInOutput: isInOutput, route: route,
                    madeID: madeID))
        }
        recorder.recordHit(
            SentResponse(
                status: status, isAborted: false, began: client.requestBegan, firstByte: loop.now,
                bodyBytes: UInt64(part.count), isProxied: client.isTrustedProxy),
            of: head, fields, on: route, client: client.peerText, security: client.security, madeID: madeID)
        return .pending
    }

    /// Puts the head of a response into `fieldList`. The stored field lines go there as they are, if no rule changes them.
    @inline(never) // Kept out of the code of HTTP/1.1.
    private func framed(
        _ answer: Answer, age: UInt32, timeToLive: UInt32, _ head: RequestHead, _ fields: FieldView, on route: Route,
        by rules: RouteRules?, of client: ClientTransport
    ) -> Outcome {
        let (start, output, list) = (output.count, output, fieldList)
        var madeID = RequestID.none
        list.removeAll()
        if rules?.responseFields == nil, let lines = answer.plainLines {
            list.append(":status", decimal: UInt64(answer.status.code))
            list.append(lines: lines.span)
            answer.writeState(ofHitAt: age, timeToLive: timeToLive, to: output, forwarding: forwarding)
            list.append(lines: output.span.extracting(start..<output.count))
        } else {
            answer.writeHead(ofHitAt: age, timeToLive: timeToLive, to: output, persists: true, forwarding: forwarding)
            if let rules { madeID = apply(rules, toHeadFrom: start, answer.status, head, fields, of: client) }
            list.append(head: output.span.extracting(start..<output.count))
        }
        output.truncate(to: start)
        return .ready(
            Hit(
                stored: answer.response, status: answer.status, part: answer.hitPart, isInOutput: false, route: route,
                madeID: madeID))
    }

    /// Whether access rules refuse a request whose hit is found. If they do not, they have taken its token, and the hit
    /// must be sent. All other requests are for `LoopContext.admit`, which is called once for each: the head of one that
    /// needs a transaction is parsed again if the kernel does not take the pending hits before it.
    private func isRefused(_ fields: FieldView, by rules: RouteRules, of client: ClientTransport) -> Bool {
        guard let access = rules.access else { return false }
        return context.refusal(by: access, of: client.peer, isTrustedProxy: client.isTrustedProxy, fields) != nil
    }

    /// Applies `response-headers` to the head of a hit, which is at the end of the output.
    /// - Returns: the identifier that was made for the request; `none` if none was.
    @inline(never)
    private func apply(
        _ rules: RouteRules, toHeadFrom start: Int, _ status: Status, _ head: RequestHead, _ fields: FieldView,
        of client: ClientTransport
    ) -> RequestID {
        guard let rules = rules.responseFields else { return .none }
        let (isTrusted, peer) = (client.isTrustedProxy, client.peerText)
        let madeID = rules.usesRequestID ? requestIDs.next() : .none
        let parts = RequestParts(
            head, fields,
            ClientScheme(of: fields, isFromTrustedProxy: isTrusted && trustsProxies, isSecure: client.isSecure),
            client: loopSettings.client(peer.span, isTrusted: isTrusted, in: fields), madeID: madeID, status: status,
            cache: Verdict.hit.name)
        rules.apply(toHeadFrom: start, in: output, parts, omitting: .omitted(from: status))
        return madeID
    }

    /// Whether the response at the end of the output may wait. If the connection does not persist, it is written at
    /// once.
    @inline(__always)
    private func mayWait(_ sending: Sending) -> Bool {
        guard sending.persists else { return false }
        let end = output.count
        return sending.waits && end < Self.mostPending || sending.hasMore && end - sending.start < Self.mostPending
    }
}
