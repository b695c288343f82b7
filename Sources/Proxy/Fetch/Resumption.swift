import Bytes
import HTTPSemantics
import Libevent
import Routing
import Telemetry
import Upstream

/// Requests the rest of a response whose body has broken off, so that the body goes on and its readers notice nothing.
///
/// Made with the head of a response whose content has yet to arrive. Owned by its fetch, confined to its loop. The
/// fetch handles the first exchange, this object the later ones: it checks each head, and passes the bytes on.
///
/// ```
/// the fetch streams ─the body breaks off→ asking ─206 with the rest→ the fetch streams
///                                          ↑ │ └─another response→ the fetch ends (body cut)
///                             waiting ─time┘ │
///                                ↑───────────┘ no response, or a status after which requests are sent again
/// the fetch streams ─the body breaks off, and the last request brought no byte→ waiting
/// ```
///
/// Each request that may have reached a server counts: a response whose rest was requested `resume` times is cut when it
/// breaks off once more. While no server takes a connection, `no-progress-timeout` is the limit.
final class Resumption: ExchangeHandler {
    /// The wait after the first request that brought no byte, in nanoseconds. It doubles with each further one.
    private static let firstWait: Int64 = 100_000_000
    /// The longest wait, in nanoseconds.
    private static let longestWait: Int64 = 5_000_000_000

    private let fetch: Fetch
    private var content: ResumableContent
    /// The place that sent the beginning.
    private let source: Place?
    /// How often the rest may still be requested.
    private var left: Int
    /// How many bytes there were when the rest was last requested; `nil` if it was not.
    private var former: Int?
    /// How many requests in a row brought no byte, and since when none came, in nanoseconds of the loop's clock.
    private var fruitless = 0, stalledAt: Int64 = 0
    /// How many bytes there are once the present exchange has ended.
    private var end = 0

    /// `nil` if the rest of the response could not be requested.
    /// - Parameters:
    ///   - fetched: the response of `fetch`.
    ///   - head: its head, as the origin sent it.
    init?(of fetch: Fetch, _ fetched: FetchedResponse, _ head: borrowing ReceivedHead) {
        left = fetch.request.route.origin.settings.resume
        // The credentials of a bound connection ended with it.
        guard left > 0, fetch.method == .get, !fetch.request.hasContent, !fetch.plan.asksForUpgrade,
            !fetch.request.isBound,
            let content = ResumableContent(
                head.fields, status: head.head.status, contentLength: head.head.framing.announcedLength,
                part: fetched.decision.part)
        else { return nil }
        self.content = content
        self.fetch = fetch
        source = fetch.exchange?.place
    }

    /// The body has broken off: requests the rest, at once or after a moment.
    /// - Parameters:
    ///   - isUnsent: whether the last request reached no server.
    ///   - least: the least wait in nanoseconds (`Retry-After`).
    /// - Returns: false if no further request is allowed, or no byte is missing.
    func begin(isUnsent: Bool = false, least: Int64 = 0) -> Bool {
        let (received, now) = (fetch.arriving.received, fetch.context.now)
        guard received < content.contentLength ?? .max, least <= Self.longestWait else { return false }
        if received == former { fruitless += 1 } else { (fruitless, stalledAt) = (0, now) }
        former = received
        if isUnsent, fruitless > 0 {
            let patience = fetch.request.route.origin.settings.noProgressTimeout.nanoseconds
            guard now - stalledAt < patience else { return false }
        } else {
            guard left > 0 else { return false }
            left -= 1
        }
        if fetch.state == .streaming { fetch.enter(.resuming) }
        guard fruitless > 0 else {
            ask()
            return true
        }
        let wait = fruitless > 6 ? Self.longestWait : min(Self.longestWait, Self.firstWait << Int64(fruitless - 1))
        fetch.context.loop.schedule(after: max(wait, least)) { [weak self] in self?.ask() }
        return true
    }

    private func ask() {
        guard fetch.state == .resuming else { return }
        let (pool, received) = (fetch.context.pool(for: fetch.request), fetch.arriving.received)
        // The same server first: it surely has the representation, and may leave out some fields. A response from the
        // shared tier had none.
        let asked = fetch.exchange?.request ?? makeRequest()
        let exchange = Exchange(
            asked.forRest(of: content, after: received), pool: pool, handler: self,
            preferring: source ?? fetch.exchange?.place)
        if pool.choosesByKey { exchange.choosePlace(by: fetch.request.sentKey.bytes) }
        exchange.start()
        fetch.exchange = exchange
    }

    private func makeRequest() -> UpstreamRequest {
        var writer = FetchRequestWriter(under: .none, awaitsContinue: false, hasLeader: false)
        return fetch.context.write(fetch.plan, from: fetch.arrival, with: &writer)
    }

    private func cut(keepsPart: Bool) { fetch.end(.truncated(.origin(.body, nil), keepsPart: keepsPart)) }

    // MARK: The exchange

    func exchange(_ exchange: Exchange, received head: borrowing ReceivedHead) {
        guard fetch.state == .resuming else { return }
        fetch.progress.last = fetch.context.now
        let (request, received, status) = (fetch.request, fetch.arriving.received, head.head.status)
        if request.route.origin.settings.retry.statuses.contains(status.code) {
            let least = head.fields.retryAfter(at: fetch.context.moment.wall) ?? 0
            exchange.cancel()
            if !begin(least: min(least, 3600) * 1_000_000_000) { cut(keepsPart: true) }
            return
        }
        guard
            let end = content.noteRest(
                head.fields, status: status, contentLength: head.head.framing.announcedLength, after: received,
                isFromSameServer: source != nil && exchange.place === source)
        else { return cut(keepsPart: false) }
        self.end = end
        request.route.upstreamMetrics.add(.resumes)
        fetch.context.notices.resumed(request, after: received, at: exchange.addressText)
        fetch.goOn(toLength: content.contentLength)
    }

    func exchange(_ exchange: Exchange, received bytes: Span<UInt8>) -> BodyIntake {
        guard fetch.state == .streaming else { return .taken }
        guard fetch.arriving.received + bytes.count <= end else {
            // Which of the bytes are right is unknown.
            cut(keepsPart: false)
            return .taken
        }
        return fetch.exchange(exchange, received: bytes)
    }

    /// Trailers of a part say nothing of the whole.
    func exchange(_ exchange: Exchange, endedWith trailers: ByteSlice?) {
        guard exchange === fetch.exchange, fetch.state == .streaming else { return }
        // The origin sent less than was requested, as it may (RFC 9110 §15.3.7).
        if fetch.arriving.received == end, begin() { return }
        fetch.exchange(exchange, endedWith: nil)
    }

    func exchange(_ exchange: Exchange, failedWith error: UpstreamError) {
        // An origin that hangs holds up the readers for one more time limit, not for as many as there may be requests.
        if error.originFailure == .timeout, !error.isBeforeRequest, fetch.arriving.received == former { left = 0 }
        fetch.exchange(exchange, failedWith: error)
    }

    func exchange(_ exchange: Exchange, interim head: borrowing ReceivedHead) {
        fetch.progress.last = fetch.context.now
    }

    /// Not called: the requests ask for no other protocol.
    func exchange(_ exchange: Exchange, upgradedTo connection: UpstreamConnection, head: borrowing ReceivedHead) {
        connection.closeTunnel()
    }

    /// Not called: the requests have no content.
    func exchangeTakesContent(_ exchange: Exchange) {}
}

extension UpstreamRequest {
    /// The same request for the bytes of `content` after the first `received` ones.
    func forRest(of content: ResumableContent, after received: Int) -> UpstreamRequest {
        let rest = headLines(without: Self.isReplaced)
        content.writeConditions(after: received, to: rest)
        rest.appendLineEnd()
        return UpstreamRequest(method: method, head: rest.copied(), mayBeNotModified: false)
    }

    /// Whether the line has a condition or a range that was for the first response.
    private static func isReplaced(_ line: Span<UInt8>) -> Bool {
        line.hasPrefixIgnoringCase("range:") || line.hasPrefixIgnoringCase("if-range:")
            || line.hasPrefixIgnoringCase("if-none-match:") || line.hasPrefixIgnoringCase("if-modified-since:")
    }
}
