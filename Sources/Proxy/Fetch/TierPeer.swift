import Bytes
import HTTPSemantics
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
        guard isExpected(head) else { return end(.noResponse, because: "status \(head.head.status.code)") }
        // The clients of the other machine may get other fields than the origin sent (`response-headers`).
        let text = offer.text(isHit: false)
        var parser = ResponseHeadParser()
        guard case .complete? = try? parser.parse(text.span) else { return end(.noResponse, because: "malformed") }
        hasHead = true
        fetch.received(ReceivedHead(parser.head, fields: parser.view(in: text.span), content: nil))
    }

    /// Whether the response is the one that was announced.
    private func isExpected(_ head: borrowing ReceivedHead) -> Bool {
        head.head.status == offer.head.head.status && head.head.contentLength == offer.head.head.contentLength
            && isSame(.etag, head.fields) && isSame(.lastModified, head.fields)
    }

    private func isSame(_ field: KnownField, _ fields: FieldView) -> Bool {
        let block = offer.head.fields
        let (own, other) = (block.view.firstIndex(of: field), fields.firstIndex(of: field))
        guard let own, let other else { return own == nil && other == nil }
        return block.view.value(at: own).isEqual(to: fields.value(at: other))
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
