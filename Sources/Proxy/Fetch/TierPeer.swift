import Bytes
import HTTPSemantics
import Routing
import SharedTier
import Upstream

/// Reads a response whose body is too large for the engine from the machine that fetches it, and gives it to a fetch.
/// Owned by its session, confined to the session's loop.
///
/// ```
/// new ─ask→ asking ─the expected head→ reading ─the end of the body→ over (the fetch is told)
///             └─another head, none→ over         └─failure→ over (the session is told)        any ─stop→ over
/// ```
final class TierPeer: ExchangeHandler {
    enum End {
        case noResponse
        /// The body has broken off.
        case broken(UpstreamError)
    }

    private let offer: TierOffer
    /// Set until the end.
    private var fetch: Fetch?
    private var exchange: Exchange?
    private var onEnd: ((End) -> Void)?
    private var hasHead = false

    /// - Parameters:
    ///   - offer: the head that the machine wrote into the engine.
    ///   - onEnd: called at most once, never inside `ask`; not at all if the body ends well, or after `stop`.
    init(of fetch: Fetch, expecting offer: TierOffer, onEnd: @escaping (End) -> Void) {
        self.fetch = fetch
        self.offer = offer
        self.onEnd = onEnd
    }

    /// Sends the request.
    /// - Parameter token: of the machine's fetch.
    func ask(_ machine: UpstreamPool, for token: ByteSlice) {
        guard let fetch else { return }
        let request = FetchRequestWriter.write(
            fetch.plan, from: fetch.arrival, by: fetch.context.loopSettings, forMachineWith: token,
            in: fetch.context.scratch)
        let exchange = Exchange(request, pool: machine, handler: self)
        self.exchange = exchange
        exchange.start()
    }

    /// The fetch has room for more content.
    func resume() { exchange?.resume() }

    /// Nobody is told any more.
    func stop() {
        (onEnd, fetch) = (nil, nil)
        exchange.take()?.cancel()
    }

    private func end(_ end: End, because problem: String) {
        let (onEnd, fetch, address) = (onEnd, fetch, exchange?.addressText ?? .empty)
        stop()
        if let fetch { fetch.context.notices.machineFailed(problem, at: address, of: fetch.request) }
        onEnd?(end)
    }

    // MARK: The exchange

    func exchange(_ exchange: Exchange, received head: borrowing ReceivedHead) {
        guard let fetch, onEnd != nil else { return }
        guard isExpected(head, on: fetch.request.route) else {
            return end(.noResponse, because: "status \(head.head.status.code)")
        }
        // The clients of the other machine may get other fields than the origin sent (`response-headers`).
        let text = offer.text(isHit: false)
        var parser = ResponseHeadParser()
        guard case .complete? = try? parser.parse(text.span) else { return end(.noResponse, because: "malformed") }
        hasHead = true
        fetch.received(ReceivedHead(parser.head, fields: parser.view(in: text.span), content: nil))
    }

    /// Whether the response is the one that was announced, rather than one that the machine has fetched since.
    private func isExpected(_ head: borrowing ReceivedHead, on route: Route) -> Bool {
        let (announced, fields) = (offer.head.head, head.fields)
        guard head.head.status == announced.status, head.head.contentLength == announced.contentLength else {
            return false
        }
        // The machine has applied the same rules to its own.
        let block = route.kept(offer.head.fields, of: announced.status)
        let own = block.view
        return own.isSame(.etag, as: fields) && own.isSame(.lastModified, as: fields) && own.isSame(.date, as: fields)
            && own.isSame(.contentType, as: fields) && own.isSame(.contentEncoding, as: fields)
    }

    func exchange(_ exchange: Exchange, received bytes: Span<UInt8>) -> BodyIntake {
        fetch?.received(bytes) ?? .taken
    }

    func exchange(_ exchange: Exchange, endedWith trailers: ByteSlice?) { fetch?.ended(with: trailers) }

    func exchange(_ exchange: Exchange, failedWith error: UpstreamError) {
        end(hasHead ? .broken(error) : .noResponse, because: "\(error)")
    }

    func exchange(_ exchange: Exchange, interim head: borrowing ReceivedHead) {
        if let fetch { fetch.progress.last = fetch.context.now }
    }

    /// Not called: the request asks for no other protocol.
    func exchange(_ exchange: Exchange, upgradedTo connection: UpstreamConnection, head: borrowing ReceivedHead) {
        connection.closeTunnel()
    }

    /// Not called: the request has no content.
    func exchangeTakesContent(_ exchange: Exchange) {}
}

extension FieldView {
    /// Whether the first lines of `field` are equal here and in `other`, or both have none.
    fileprivate func isSame(_ field: KnownField, as other: FieldView) -> Bool {
        let (own, second) = (firstIndex(of: field), other.firstIndex(of: field))
        guard let own, let second else { return own == nil && second == nil }
        return value(at: own).isEqual(to: other.value(at: second))
    }
}
