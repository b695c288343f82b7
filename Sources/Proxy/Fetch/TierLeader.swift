import Bytes
import HTTPSemantics
import Libevent
import Routing
import SharedTier
import Storage
import Upstream

/// Writes the response of a fetch that this machine leads to the engine, while it arrives. Owned by its session, confined
/// to the session's loop.
///
/// ```
/// leading ─head of a response that is for all→ writing ─the end of the body→ over (finished)
///   │ ├─the same, too large for the engine→ announcing ─the fetch ends→ over (released)
///   │ ├─head of another response→ over (unshared)
///   │ └─304→ over (the stored response is fresh again, or is written whole)
///   └─the fetch ends; in any state: the lease is lost, the engine is too slow or full→ over (released)
/// ```
final class TierLeader {
    private enum State { case leading, writing, announcing, over }

    /// The bytes of content that go to the engine at once, as soon as so many are there: with what surrounds them, one
    /// entry takes 64 KiB of the engine's memory. A byte more, and it would take 80.
    private static let pieceSize = 63 << 10
    /// The most bytes that may be on their way to the engine, unless `max-object` is more.
    private static let leastUnderWay = 8 << 20
    /// How long fewer bytes wait for more, in nanoseconds.
    private static let pieceDelay: Int64 = 10_000_000
    /// How long each machine fetches for itself, in nanoseconds, after a response that is not for the tier.
    private static let apart: Int64 = 1_000_000_000
    /// The longest time, in nanoseconds, for which all machines remember that a response is for one request.
    private static let mostUnshared: Int64 = 30_000_000_000

    private let engine: TierEngine
    private let shared: SharedTierState
    private let request: ClientRequest
    private let asof: TierPurgeID
    private var lead: TierLead
    private var state = State.leading
    private let piece = ByteBuffer(capacity: 0)
    /// The bytes on their way to the engine.
    private var underWay = 0
    /// The most bytes of content that are written. More than `max-object` if the length is not known before: those who
    /// follow get the rest, but the response is not kept.
    private var mostContent = 0
    private var hasPieceTimer = false
    private var keeping = TierLead.Keeping()
    private var timer: Timer?
    /// Whether the fetch has its slot of the origin.
    var hasBegun = false
    /// How often the lease was renewed before that. Another machine's origin may have a slot.
    private var renewalsInQueue = 0
    private static let mostRenewalsInQueue = 6

    /// A stale response in the engine, which the origin may confirm.
    struct Former {
        let token: ByteSlice
        let length: Int64
        let head: TierHead
        /// Drops it.
        let drop: TierCommand
    }

    private var former: Former?

    /// The engine has made this machine the leader.
    init(for session: TierSession, _ question: TierLookUp, _ token: ByteSlice, after former: Former?) {
        self.former = former
        engine = session.engine
        shared = session.shared
        request = session.request
        asof = session.asof
        lead = TierLead(
            question.keys, variant: question.variant, token: token, lease: engine.leaseMilliseconds, seal: engine.seal)
        renewLater()
    }

    /// The head of the response is there.
    func headCame(_ head: borrowing ReceivedHead, to fetch: Fetch) {
        guard state == .leading else { return }
        guard let fetched = fetch.fetched else { return giveUp() }
        if !fetched.response.facts.supersedesStored { former = nil }
        guard fetched.sharing == .everyone, fetched.decision.willBeStored, fetched.decision.part == nil,
            fetched.leaderResponse == nil
        else { return unshare(fetched, in: fetch) }
        mostContent = max(engine.settings.maxObjectSize, fetch.context.storage.objectLimit)
        guard begin(fetched.response, head.fields, length: fetched.decision.contentLength) else {
            dropFormer()
            return unshare(for: Self.apart, isForOne: false)
        }
        if let content = head.content, fetched.response.isPacked { write(content) }
    }

    /// The origin has confirmed a stored response, which is the answer: the other machines have it from now on.
    func validated(_ fetched: FetchedResponse) {
        // The stored head lacks what `response-headers` removed, the tags perhaps, and has what it added.
        guard state == .leading, fetched.source == .validated, request.route.storedFields == nil else { return }
        let (response, policy) = (fetched.response, request.route.policy)
        let sharing = response.facts.sharing(
            answering: request.facts(asking: .get, hasPassCookie: request.hasPassCookie), policy: policy)
        guard fetched.willBeStored, sharing == .everyone, response.parts == nil, fetched.leaderResponse == nil,
            let length = response.bodyLength, length <= engine.settings.maxObjectSize, let pieces = response.pieces
        else { return }
        let head = response.head
        if freshenFormer(by: response, head.view, length: length) { return }
        guard begin(response, head.view, length: length) else { return }
        for index in 0..<pieces.count where state == .writing {
            let piece = pieces[index]
            write(piece.span)
        }
        contentEnded(nil)
    }

    /// The engine has the response that was confirmed: only its head is written.
    /// - Returns: false if the engine has none, or another one.
    private func freshenFormer(by response: StoredResponse, _ fields: FieldView, length: Int) -> Bool {
        guard let former, former.length == length, let tag = fields.entityTag, !tag.isWeak else { return false }
        let block = former.head.fields
        guard let own = fields.firstIndex(of: .etag), let other = block.view.firstIndex(of: .etag),
            fields.value(at: own).isEqual(to: block.view.value(at: other)),
            let record = record(of: response, fields, length: length).written(under: former.token, seal: engine.seal),
            keeping.variant == lead.variant
        else { return false }
        shared.counts.add(.written)
        stop(lead.freshen(former.token, with: record, fresh: keeping.fresh, lifetime: keeping.lifetime))
        return true
    }

    /// Begins to write a response.
    /// - Returns: whether it is small enough, or other machines can read its body from this one.
    private func begin(_ response: StoredResponse, _ fields: FieldView, length: Int?) -> Bool {
        var record = record(of: response, fields, length: length)
        let isTooLarge = length ?? 0 > engine.settings.maxObjectSize
        if isTooLarge {
            guard let address = engine.advertised else { return false }
            record.elsewhere = address
        }
        guard let written = record.written(under: lead.token, seal: engine.seal) else { return false }
        state = isTooLarge ? .announcing : .writing
        engine.writerBegan()
        if isTooLarge {
            dropFormer()
            shared.announce(lead.token, of: request.sentKey.bytes)
        }
        send(lead.head(written)) { reply throws(TierReplyError) in try TierOutcome(reply) }
        return true
    }

    /// The record of a response. Also settles how long the engine keeps it, and for which requests.
    private func record(of response: StoredResponse, _ fields: FieldView, length: Int?) -> TierRecord {
        keeping.vary = request.tierVary(of: fields)
        let variant = request.tierVariant(under: keeping.vary)
        keeping.variant = variant.name
        engine.note(vary: keeping.vary, of: lead.keys)
        let facts = response.facts
        let fresh = max(0, facts.freshUntil - facts.responseTime.monotonic) / 1_000_000
        keeping.fresh = Int(fresh)
        keeping.lifetime = Int(fresh) + 1000 * Int(max(facts.staleWhileRevalidate, facts.staleIfError))
        let age = max(0, facts.responseTime.monotonic - facts.born) / 1_000_000
        var record = TierRecord(
            key: request.sentKey.bytes, asof: asof, age: UInt64(age),
            head: response.headForTier(fields, policy: request.route.policy, length: length))
        record.selecting = variant.selecting
        return record
    }

    /// Content has come: as much of it as the fetch takes goes to the engine.
    func pass(_ bytes: Span<UInt8>, to fetch: Fetch) -> BodyIntake {
        let before = fetch.arriving.received
        let intake = fetch.received(bytes)
        if fetch.state == .streaming { contentCame(bytes.extracting(first: fetch.arriving.received - before)) }
        return intake
    }

    private func contentCame(_ bytes: Span<UInt8>) {
        guard state == .writing else { return }
        guard lead.length + piece.count + bytes.count <= mostContent else { return giveUp() }
        write(bytes)
    }

    private func write(_ bytes: Span<UInt8>) {
        piece.append(bytes)
        if piece.count >= Self.pieceSize { return flush() }
        guard !hasPieceTimer, !piece.isEmpty else { return }
        hasPieceTimer = true
        engine.loop.schedule(after: Self.pieceDelay) { [weak self] in
            self?.hasPieceTimer = false
            self?.flush()
        }
    }

    private func flush() {
        let piece = piece
        while state == .writing, !piece.isEmpty {
            let count = min(piece.count, Self.pieceSize)
            // Otherwise the engine is too slow.
            guard underWay + count <= max(Self.leastUnderWay, engine.settings.maxObjectSize) else { return giveUp() }
            underWay += count
            shared.counts.add(bytesWritten: count)
            let command = lead.content(ByteSlice(copying: piece.span.extracting(first: count)))
            piece.consume(count)
            send(command) { [weak self] reply throws(TierReplyError) in
                self?.underWay -= count
                return try TierOutcome(ofEntry: reply)
            }
        }
    }

    /// The content is complete.
    func contentEnded(_ trailers: ByteSlice?) {
        guard state == .writing else { return }
        flush()
        guard state == .writing else { return }
        if lead.length > engine.settings.maxObjectSize { keeping.lifetime = 0 }
        if keeping.lifetime == 0 { dropFormer() }
        shared.counts.add(.written)
        stop(lead.finish(trailers: trailers ?? .empty, keeping))
    }

    /// The origin's response takes the place of a stale one, but not in the engine. No machine is to use the stale one any
    /// more (RFC 9111 §4.3.3).
    private func dropFormer() {
        if let former = former.take() { engine.send(former.drop, patience: TierEngine.patience) { _ in } }
    }

    private func unshare(_ fetched: FetchedResponse, in fetch: Fetch) {
        dropFormer()
        let reason = fetched.sharing.reasonToRemember(
            fetched.response.facts.status, for: fetch.plan, leaderWasReleased: fetch.leaderWasReleased)
        guard reason != nil else { return unshare(for: Self.apart, isForOne: false) }
        let memory = fetch.context.settings.coalescing.unshareableTTL.nanoseconds
        unshare(for: min(memory, Self.mostUnshared), isForOne: true)
    }

    /// - Parameter time: in nanoseconds.
    private func unshare(for time: Int64, isForOne: Bool) {
        stop(lead.unshare(for: Int(max(1, time / 1_000_000)), isForOne: isForOne))
    }

    /// The origin gave no response: for a moment each machine asks for itself.
    func noteFailure() {
        if state == .leading { unshare(for: Self.apart, isForOne: false) } else { giveUp() }
    }

    /// The response is not written, or no more of it. A second call does nothing.
    func giveUp() {
        guard state != .over else { return }
        if state != .announcing { shared.counts.add(.givenUp) }
        let engine = engine
        engine.release(lead, stop())
    }

    /// Ends with this command.
    private func stop(_ last: TierCommand) {
        let (end, lead, engine) = (stop(), lead, engine)
        engine.send(last, patience: TierEngine.patience) { reply in
            // Without effect if the engine has got the command.
            if reply == nil { engine.release(lead, end) } else { end() }
        }
    }

    /// - Returns: to be called once the engine has the last of what was written.
    private func stop() -> () -> Void {
        if state == .announcing { shared.withdraw(lead.token) }
        let hasWritten = state == .writing || state == .announcing
        state = .over
        timer?.cancel()
        timer = nil
        return { [engine] in if hasWritten { engine.writerEnded() } }
    }

    private func renewLater() {
        timer = engine.loop.schedule(after: engine.settings.lease.nanoseconds / 3) { [weak self] in
            guard let self, state != .over else { return }
            if !hasBegun { renewalsInQueue += 1 }
            guard renewalsInQueue < Self.mostRenewalsInQueue else { return giveUp() }
            engine.send(lead.renewal, patience: TierEngine.patience) { [weak self] reply in
                guard let self, let reply, let outcome = try? TierOutcome(reply), outcome != .done else { return }
                // Another machine leads.
                stop()()
            }
            renewLater()
        }
    }

    /// Sends a command without which those who follow miss something. If it fails, nothing more is written; if the engine
    /// refuses it, as a full one does, the other machines are not to try the same one after another.
    private func send(
        _ command: TierCommand, _ outcome: @escaping (TierValue) throws(TierReplyError) -> TierOutcome
    ) {
        engine.send(command, patience: TierEngine.patience) { [weak self] reply in
            var result: TierOutcome?
            do throws(TierReplyError) {
                if let reply { result = try outcome(reply) }
            } catch {
                guard let self, state != .over else { return }
                engine.noteRefusal()
                shared.counts.add(.givenUp)
                return unshare(for: Self.apart, isForOne: false)
            }
            guard let self, result != .done else { return }
            giveUp()
        }
    }
}
