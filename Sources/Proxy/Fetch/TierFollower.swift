import Bytes
import HTTPSemantics
import Libevent
import Routing
import SharedTier
import Upstream

/// Reads a response from the engine that another machine has fetched, or is fetching, and gives it to a fetch piece by
/// piece. Owned by its session, confined to the session's loop.
///
/// ```
/// new ─begin→ reading ─end of the body, or no more of use→ over (the session is told)        any ─stop→ over
/// ```
///
/// While another machine fetches, the engine pushes a word when there is more, which is then requested; and the lease is
/// looked at from time to time, since a leader that has died tells nobody.
final class TierFollower {
    enum End {
        case complete(trailers: ByteSlice?)
        /// The head is for requests with other fields: there may be a response for these.
        case otherVariant
        /// Nobody can use the response: a purge has removed it, or no machine has written it so.
        case useless
        /// This machine would not store the response for all.
        case notForThisMachine
        /// Another machine has the body.
        case elsewhere(TierOffer)
        /// No more of it comes: its leader has gone, or the engine has evicted it.
        case broken(hasHead: Bool)
        /// The engine did not answer.
        case unanswered
    }

    private enum State { case new, reading, over }

    /// Names the stream.
    var token: ByteSlice { reader.token }

    /// Whether the response is stored, rather than being fetched by another machine.
    var readsStored: Bool { stored != nil }

    private let session: TierSession
    private let question: TierLookUp
    private var state = State.new
    private var reader: TierReader
    /// The response in the engine; `nil` while another machine fetches it.
    private let stored: TierStored?
    /// Set until the end.
    private var fetch: Fetch?
    private var onEnd: ((End) -> Void)?
    /// The pieces that were read, and that the fetch has not taken.
    private var pieces: [TierReader.Piece] = []
    private var hasHead = false
    private var isPaused = false
    private var isRequesting = false
    /// Whether the entries that came with a hit are no response.
    private var isMalformed = false
    /// Whether the head goes out although no content is there.
    private var isHeadDue = false, willHandOverHead = false
    /// Since when the engine gives no answer, in nanoseconds of the loop's clock.
    private var silentSince: Int64?
    private var mayHaveMore = true
    private var timer: Timer?

    /// How long a head waits for content, in nanoseconds: a leader writes after 10 ms the bytes that have come.
    private static let headPatience: Int64 = 30_000_000
    /// After no reply, in nanoseconds.
    private static let pause: Int64 = 50_000_000

    private var engine: TierEngine { session.engine }
    private var keys: TierKeys { question.keys }
    private var watched: [ByteSlice] { [keys.stream(token), keys.lease(question.variant)] }

    /// Follows the machine that leads under this token.
    init(of session: TierSession, _ question: TierLookUp, after token: ByteSlice) {
        self.session = session
        self.question = question
        reader = TierReader(token, seal: session.engine.seal)
        stored = nil
    }

    /// Reads the stored response `stored` from the engine.
    init(of session: TierSession, _ question: TierLookUp, reading stored: TierStored) {
        self.session = session
        self.question = question
        reader = TierReader(stored.token, seal: session.engine.seal)
        self.stored = stored
        isMalformed = !read(stored.entries) || reader.state == .head
        if reader.state == .complete, reader.length != stored.length { isMalformed = true }
        mayHaveMore = reader.state == .content
    }

    /// - Parameter onEnd: called once, never inside this call, unless `stop` is called before.
    func begin(for fetch: Fetch, onEnd: @escaping (End) -> Void) {
        state = .reading
        self.fetch = fetch
        self.onEnd = onEnd
        engine.loop.atIterationEnd { [self] in goOn() }
        guard stored == nil else { return }
        engine.watch(watched, for: self) { [unowned self] in
            mayHaveMore = true
            goOn()
        }
    }

    /// The fetch has room for more content.
    func resume() {
        guard isPaused else { return }
        isPaused = false
        goOn()
    }

    /// Nobody is told any more.
    func stop() {
        if state == .reading, stored == nil { engine.unwatch(watched, for: self) }
        state = .over
        timer?.cancel()
        (timer, onEnd, fetch, pieces) = (nil, nil, nil, [])
    }

    private func end(_ end: End) {
        let onEnd = onEnd
        stop()
        onEnd?(end)
    }

    /// A record whose response is not whole is of no use to anybody.
    private func brokeOff() { end(stored == nil || hasHead ? .broken(hasHead: hasHead) : .useless) }

    // MARK: Reading

    /// - Returns: whether `entries` has the form of entries.
    private func read(_ entries: TierValue) -> Bool {
        var next = reader
        guard let found = try? next.read(entries) else { return false }
        pieces += found
        reader = next
        return true
    }

    /// Hands the pieces over to the fetch, and reads more.
    private func goOn() {
        if isMalformed, state == .reading { return end(.useless) }
        if case .refused(let refusal) = reader.state, state == .reading, !hasHead {
            session.noteRefusal(refusal)
            return end(.useless)
        }
        while state == .reading, !isPaused, mayHandOver { handOver(pieces.removeFirst()) }
        guard state == .reading, !isPaused else { return }
        if case .refused(let refusal) = reader.state {
            session.noteRefusal(refusal)
            return brokeOff()
        }
        waitForContent()
        guard mayHaveMore, !isRequesting else { return }
        requestMore()
    }

    /// The head is held back until content is there, or the end: a missing or wrong entry harms nobody then. A response
    /// that another machine fetches may have none for long: its head waits for a moment only.
    private var mayHandOver: Bool {
        !pieces.isEmpty && (hasHead || isHeadDue || pieces.count > 1 || !reader.isOpen)
    }

    private func waitForContent() {
        guard stored == nil, !hasHead, !pieces.isEmpty, !willHandOverHead else { return }
        willHandOverHead = true
        engine.loop.schedule(after: Self.headPatience) { [weak self] in
            guard let self, state == .reading else { return }
            isHeadDue = true
            goOn()
        }
    }

    private func requestMore() {
        (isRequesting, mayHaveMore) = (true, false)
        var isLed: Bool?
        // A complete response needs no leader.
        if stored == nil {
            let reader = reader
            engine.send(TierReader.lease(keys, question.variant), patience: patience) { reply in
                isLed = reply.flatMap { try? reader.leads($0) }
            }
        } else {
            isLed = false
        }
        engine.send(reader.command(keys), patience: patience) { [self] reply in
            isRequesting = false
            guard state == .reading else { return }
            guard let reply, let isLed else { return noReply() }
            silentSince = nil
            let before = pieces.count
            guard read(reply) else { return hasHead || stored != nil ? brokeOff() : end(.unanswered) }
            if pieces.count - before >= TierNumbers.entriesAtOnce { mayHaveMore = true }
            if pieces.count == before, !isLed, reader.isOpen { return brokeOff() }
            // The last entries of a leader that has ended are here: a missing entry never comes.
            if !isLed, pieces.count > before { mayHaveMore = true }
            watchLease()
            goOn()
        }
    }

    /// How long a reply may take, in nanoseconds; `nil`: the time of the settings. A client that has a head would be cut
    /// off, or the origin asked once more.
    private var patience: Int64? { hasHead ? engine.settings.lease.nanoseconds / 3 : nil }

    /// The engine does not answer. That says nothing of the response: if its rest cannot be requested from the origin, the
    /// engine is asked again for a while.
    private func noReply() {
        guard hasHead else { return end(.unanswered) }
        let (now, since) = (engine.loop.now, silentSince ?? engine.loop.now)
        guard fetch?.resumption == nil, now - since < engine.settings.lease.nanoseconds else { return brokeOff() }
        silentSince = since
        mayHaveMore = true
        timer?.cancel()
        timer = engine.loop.schedule(after: Self.pause) { [weak self] in self?.goOn() }
    }

    private func watchLease() {
        timer?.cancel()
        guard stored == nil else { return }
        timer = engine.loop.schedule(after: engine.settings.lease.nanoseconds + 100_000_000) { [weak self] in
            guard let self, state == .reading else { return }
            mayHaveMore = true
            goOn()
        }
    }

    // MARK: The fetch

    private func handOver(_ next: TierReader.Piece) {
        guard let fetch else { return stop() }
        switch next {
        case .head(let record, let at):
            if let problem = handOver(record, at: at, to: fetch) { end(problem) } else { hasHead = true }
        case .content(let bytes):
            session.shared.counts.add(bytesRead: bytes.count)
            switch fetch.received(bytes.span) {
            case .taken: break
            case .takenAndFull: isPaused = true
            case .refused(let count):
                isPaused = true
                pieces.insert(.content(bytes[count..<bytes.count]), at: 0)
            }
        case .end(let trailers):
            end(.complete(trailers: trailers.isEmpty ? nil : trailers))
        }
    }

    /// - Returns: why the head is not for the fetch.
    private func handOver(_ bytes: ByteSlice, at: Int64, to fetch: Fetch) -> End? {
        let offer: TierOffer
        switch session.judge(stored?.freshened ?? bytes, under: token, at: stored?.at ?? at, length: stored?.length) {
        case .good(let good): offer = good
        case .otherVariant: return .otherVariant
        case .useless: return .useless
        }
        reader.announced = offer.head.announced
        let text = offer.text(isHit: stored != nil)
        var parser = ResponseHeadParser()
        guard case .complete? = try? parser.parse(text.span) else { return .useless }
        let received = ReceivedHead(parser.head, fields: parser.view(in: text.span), content: nil)
        guard HeadHandling(of: fetch).mayUseStored(received) else { return .notForThisMachine }
        if !offer.record.elsewhere.isEmpty { return .elsewhere(offer) }
        fetch.received(received)
        return nil
    }
}
