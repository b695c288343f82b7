import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Routing
import SharedTier
import Storage
import Telemetry
import Upstream

/// One fetch's part in the shared tier: it reads the response that another machine has fetched or is fetching, or writes
/// the one that this machine fetches.
///
/// The operation of the fetch depends on the look-up (`TierLookUp`): it takes no slot of the origin before the answer, and
/// none at all if the tier has the response. Owned by its fetch, confined to the fetch's loop.
///
/// ```
/// asking ─another Vary→ asking
///   ├─hit, join→ found ─the fetch begins→ reading ─the end of the body→ over
///   │                                       ├─broken off before its head→ asking (the fetch waits)
///   │                                       ├─its head is not for this machine→ over (the origin is asked)
///   │                                       └─broken off later→ over (the origin is asked for the rest)
///   ├─lead→ leading ─head of a response that is kept→ writing ─the end of the body→ over (finished)
///   │         ├─head of another response→ over (unshared)        └─lease lost, engine slow, too large→ over (released)
///   │         └─the fetch ends→ over (released)
///   └─unshareable, no answer in time→ over
/// ```
///
/// Whatever the engine does, the fetch goes on: at the worst as if there were no tier.
final class TierSession {
    private enum State { case asking, found, reading, leading, writing, over }

    /// The bytes of content that go to the engine at once, as soon as so many are there.
    private static let pieceSize = 64 << 10
    /// How long fewer bytes wait for more, in nanoseconds.
    private static let pieceDelay: Int64 = 10_000_000
    /// The most bytes that may be on their way to the engine: if there were more, it is too slow.
    private static let mostUnderWay = 4 << 20
    /// How long the reply to a command of the leader may take, in nanoseconds: no client waits for it.
    private static let patienceOfLeader: Int64 = 2_000_000_000
    /// How often one fetch looks up: for `Vary`, and after leaders that broke off.
    private static let mostLookUps = 5

    private let engine: TierEngine
    private let shared: SharedTierState
    /// The last purge that was known before the origin could be asked.
    private let asof: TierPurgeID
    private let request: ClientRequest
    private var question: TierLookUp
    private var selecting = ByteSlice.empty
    private var state = State.asking
    private var lookUps = 0
    /// Ends the look-up.
    private var lookUp: Completion<Void>?
    private weak var operation: FetchOperation?
    /// Set while the fetch reads.
    private weak var fetch: Fetch?
    private var timer: Libevent.Timer?

    // Reading
    private var reader: TierReader?
    private var hasHead = false
    private var isPaused = false
    private var isRequesting = false
    private var mayHaveMore = true
    /// What was read, and the fetch has not taken.
    private var pieces: [TierReader.Piece] = []
    /// What a hit brought.
    private var stored: TierStored?
    /// The engine's clock minus the loop's, in milliseconds.
    private var clockLead: Int64 = 0

    // Writing
    private var lead: TierLead?
    private let piece = ByteBuffer(capacity: 0)
    private var underWay = 0
    private var hasPieceTimer = false
    private var keeping = TierLead.Keeping()

    /// `nil` if a fetch by `plan` does without the tier: its response is not for others, or the engine does not answer.
    init?(_ engine: TierEngine, for plan: borrowing FetchPlan, _ shared: SharedTierState) {
        guard engine.isAvailable, Self.serves(plan),
            let cursor = shared.history.withLock({ $0.isCurrent ? $0.cursor : nil })
        else { return nil }
        self.shared = shared
        asof = cursor
        self.engine = engine
        request = plan.request
        let key = plan.request.key.bytes
        question = TierLookUp(engine.keys(of: key.span))
        question.token = engine.nextToken()
    }

    /// Whether a fetch by `plan` consults the tier.
    static func serves(_ plan: borrowing FetchPlan) -> Bool {
        guard plan.isShared, case .get(isAuthorized: false) = plan.key.kind, plan.key.visits == 0 else { return false }
        // A client that wants a response validated, or a young one, gets none that others have stored.
        let directives = plan.request.directives
        return plan.request.route.isCached && !plan.request.hasContent && directives.flags.isEmpty
    }

    // MARK: The look-up

    /// Begins the look-up before `operation`, which is not in the table yet.
    func lookUp(before operation: FetchOperation) {
        self.operation = operation
        let bound = LoopBound(self, on: engine.loop)
        let asked: Enqueued<WorkOperation<TierLookUpWork>, Never> = engine.lookUps.enqueue(
            operation.number, waiter: nil, make: { TierLookUpWork(session: bound) })
        if let lookUp = asked.operation { operation.addDependency(lookUp, rule: .end) }
    }

    fileprivate func beginLookUp(_ completion: Completion<Void>) {
        lookUp = completion
        ask()
    }

    private func ask() {
        state = .asking
        lookUps += 1
        question.vary = engine.vary(of: question.keys)
        (question.variant, selecting) = variant(under: question.vary)
        engine.send(question.command(lease: lease)) { [self] reply in
            // Released meanwhile.
            guard state == .asking else { return }
            guard let reply, let answer = try? TierAnswer(reply) else { return noAnswer() }
            clockLead = answer.now - engine.loop.now / 1_000_000
            take(answer)
        }
    }

    /// The engine may have made this machine the leader all the same.
    private func noAnswer() {
        shared.counts.add(.unanswered)
        if let token = question.token {
            send(TierLead(question.keys, variant: question.variant, token: token, lease: lease).release)
        }
        end(.over)
    }

    private func take(_ answer: TierAnswer) {
        switch answer.verdict {
        case .vary(let vary):
            engine.note(vary: vary, of: question.keys)
            guard lookUps < Self.mostLookUps else { return end(.over) }
            ask()
        case .hit:
            shared.counts.add(.hit)
            stored = answer.stored
            reader = answer.stored.map { TierReader($0.token, seal: engine.seal) }
            if let stored = answer.stored { read(stored.entries) }
            mayHaveMore = reader?.state == .content
            end(.found)
        case .join(let token, _):
            shared.counts.add(.joined)
            reader = TierReader(token, seal: engine.seal)
            end(.found)
        case .lead:
            shared.counts.add(.led)
            lead = question.token.map {
                TierLead(question.keys, variant: question.variant, token: $0, lease: lease, seal: engine.seal)
            }
            renewLater()
            end(.leading)
        case .alone, .miss:
            shared.counts.add(.unshareable)
            end(.over)
        }
    }

    /// The look-up is over.
    private func end(_ next: State) {
        state = next
        if next == .found { operation?.raisePriority(to: .immediate) }
        if let lookUp = lookUp.take() {
            lookUp.finish(.success(()))
        } else if let fetch {
            // The fetch waits for a second look-up.
            self.fetch = nil
            if !begin(for: fetch) { fetch.ask() }
        }
    }

    /// The variant of the request under a `Vary` in the form of `varyText`.
    private func variant(under vary: ByteSlice) -> (name: ByteSlice, selecting: ByteSlice) {
        guard !vary.isEmpty else { return (.empty, .empty) }
        let rule = request.varyRule(HeadBlock(lines: vary).view)
        let selecting = request.variant(under: rule).key.bytes
        return (TierKeys.variant(of: selecting.span), selecting)
    }

    private var lease: Int { Int(engine.settings.lease.nanoseconds / 1_000_000) }

    // MARK: The fetch

    /// The operation of the fetch has begun.
    /// - Returns: whether the fetch gets its response from the tier.
    func begin(for fetch: Fetch) -> Bool {
        guard state == .found else { return false }
        state = .reading
        self.fetch = fetch
        fetch.noteAsking()
        // Nothing is reported from inside `begin`.
        engine.loop.atIterationEnd { [self] in goOn() }
        engine.watch(watched, for: self) { [unowned self] in
            mayHaveMore = true
            goOn()
        }
        return true
    }

    /// The fetch has room for more content.
    func resume() {
        guard state == .reading, isPaused else { return }
        isPaused = false
        goOn()
    }

    /// The fetch is over.
    func fetchEnded() {
        switch state {
        case .asking:
            // The answer comes later, or never.
            noAnswer()
        case .leading, .writing: giveUp()
        case .found, .reading, .over: stop()
        }
    }

    private func stop() {
        if reader != nil { engine.unwatch(watched, for: self) }
        state = .over
        timer?.cancel()
        timer = nil
        pieces = []
        fetch = nil
    }

    // MARK: Reading

    private var watched: [ByteSlice] {
        guard let reader else { return [] }
        return [question.keys.stream(reader.token), question.keys.lease(question.variant)]
    }

    private func read(_ entries: TierValue) {
        guard var next = reader else { return }
        if let found = try? next.read(entries) { pieces += found }
        reader = next
    }

    /// Hands over what was read, and reads more.
    private func goOn() {
        while state == .reading, !isPaused, !pieces.isEmpty { handOver(pieces.removeFirst()) }
        guard state == .reading, !isPaused, let reader else { return }
        if case .refused = reader.state { return brokeOff() }
        guard mayHaveMore, !isRequesting else { return }
        requestMore(reader)
    }

    private func requestMore(_ reader: TierReader) {
        (isRequesting, mayHaveMore) = (true, false)
        var isLed: Bool?
        // A complete response needs no leader.
        if stored == nil {
            engine.send(TierReader.lease(question.keys, question.variant)) { reply in
                isLed = reply.flatMap { try? reader.leads($0) }
            }
        } else {
            isLed = false
        }
        engine.send(reader.command(question.keys)) { [self] reply in
            isRequesting = false
            guard state == .reading else { return }
            guard let reply, let isLed else { return brokeOff() }
            let before = pieces.count
            read(reply)
            if pieces.count - before >= TierNumbers.entriesAtOnce { mayHaveMore = true }
            if pieces.count == before, !isLed, self.reader?.state != .complete { return brokeOff() }
            // The last entries of a leader that has ended are here: what is missing never comes.
            if !isLed, pieces.count > before { mayHaveMore = true }
            watchOver()
            goOn()
        }
    }

    /// A leader that died tells nobody: the lease is read again once it must be over.
    private func watchOver() {
        timer?.cancel()
        timer = engine.loop.schedule(after: engine.settings.lease.nanoseconds + 100_000_000) { [weak self] in
            guard let self, state == .reading else { return }
            mayHaveMore = true
            goOn()
        }
    }

    private func handOver(_ next: TierReader.Piece) {
        guard let fetch else { return stop() }
        switch next {
        case .head(let record, let at):
            switch handOver(record, at: at, to: fetch) {
            case .taken: hasHead = true
            case .otherVariant: lookAgain()
            case .useless:
                shared.counts.add(.refused)
                lookAgain(without: reader?.token)
            case .notForThisMachine:
                shared.counts.add(.refused)
                stop()
                fetch.ask()
            }
        case .content(let bytes):
            shared.counts.add(bytesRead: bytes.count)
            switch fetch.received(bytes.span) {
            case .taken: break
            case .takenAndFull: isPaused = true
            case .refused(let count):
                isPaused = true
                pieces.insert(.content(bytes[count..<bytes.count]), at: 0)
            }
        case .end(let trailers):
            fetch.ended(with: trailers.isEmpty ? nil : trailers)
        case .elsewhere:
            brokeOff()
        }
    }

    /// What became of a head from the engine.
    private enum HeadUse {
        case taken
        /// It is for requests with other fields: there may be a response for these.
        case otherVariant
        /// Nobody can use it: it was purged, or is not what a machine writes.
        case useless
        /// This machine would not store it for all.
        case notForThisMachine
    }

    private func handOver(_ bytes: ByteSlice, at: Int64, to fetch: Fetch) -> HeadUse {
        let key = request.key.bytes
        let record = stored?.freshened ?? bytes
        guard let token = reader?.token,
            let read = try? TierRecord(reading: record, for: key.span, under: token, seal: engine.seal),
            let parsed = try? TierHead(read)
        else { return .useless }
        // Beside the key: a response to a request with other values in the fields that `Vary` names.
        let vary = varyText(of: parsed.fields.view)
        engine.note(vary: vary, of: question.keys)
        guard variant(under: vary).selecting == read.selecting else { return .otherVariant }
        guard !shared.history.withLock({ $0.mayHavePurged(since: read.asof) { isMeant($0, parsed.fields.view) } })
        else { return .useless }
        reader?.announced = parsed.announced
        let time = stored?.at ?? at
        let age = max(0, clockLead + engine.loop.now / 1_000_000 - time) + Int64(clamping: read.age)
        let head = ByteBuffer(capacity: read.head.count + 24)
        head.append(read.head.span.extracting(first: read.head.count - 2))
        head.append("Age: ")
        head.append(decimal: UInt64(age / 1000))
        head.append("\r\n\r\n")
        var parser = ResponseHeadParser()
        guard case .complete? = try? parser.parse(head.span) else { return .useless }
        let received = ReceivedHead(parser.head, fields: parser.view(in: head.span), content: nil)
        guard HeadHandling(of: fetch).mayUseStored(received) else { return .notForThisMachine }
        fetch.received(received)
        return .taken
    }

    /// Whether a purge is one of a response to the request with these fields. Tags are found wherever they stand: a
    /// response that is fetched once more does no harm.
    private func isMeant(_ purge: TierPurge, _ fields: FieldView) -> Bool {
        let key = CacheKey(hash: 0, bytes: request.key.bytes)
        return switch purge.kind {
        case .everything: true
        case .url: key.url.isEqual(to: purge.value.span)
        case .prefix: key.isBelow(purge.value.span)
        case .tag, .group: fields.contains(inValues: purge.value.span)
        }
    }

    /// No more of the response comes.
    private func brokeOff() {
        let (fetch, former) = (fetch, reader?.token)
        shared.counts.add(.broken)
        stop()
        guard let fetch else { return }
        if hasHead {
            return fetch.failed(with: UpstreamError(.body, detail: "the shared tier has no more of the response"))
        }
        self.fetch = fetch
        lookAgain(without: former)
    }

    /// Looks up once more; the fetch waits.
    /// - Parameter broken: the token of what is of no use.
    private func lookAgain(without broken: ByteSlice? = nil) {
        let fetch = fetch
        stop()
        guard let fetch else { return }
        question.broken = broken ?? .empty
        guard lookUps < Self.mostLookUps, engine.isAvailable else { return fetch.ask() }
        question.token = engine.nextToken()
        (reader, stored, mayHaveMore) = (nil, nil, true)
        self.fetch = fetch
        ask()
    }

    // MARK: Writing

    /// The head of the response is there, from whom ever.
    func headCame(_ head: borrowing ReceivedHead, to fetch: Fetch) {
        guard state == .leading else { return }
        guard let fetched = fetch.fetched else { return giveUp() }
        guard fetched.sharing == .everyone, fetched.decision.willBeStored, fetched.decision.part == nil,
            fetched.leaderResponse == nil
        else { return unshare(for: fetched.sharing) }
        guard begin(fetched.response, head.fields, length: fetched.decision.contentLength) else {
            return unshare(for: fetched.sharing)
        }
        if let content = head.content, fetched.response.isPacked { write(content) }
    }

    /// The origin has confirmed a stored response, which is the answer: the other machines have it from now on.
    func validated(_ fetched: FetchedResponse) {
        guard state == .leading, fetched.source == .validated else { return }
        let (response, policy) = (fetched.response, request.route.policy)
        let sharing = response.facts.sharing(
            answering: request.facts(asking: .get, hasPassCookie: request.hasPassCookie), policy: policy)
        guard fetched.willBeStored, sharing == .everyone, response.parts == nil, fetched.leaderResponse == nil,
            let length = response.bodyLength, let pieces = response.pieces
        else { return }
        let head = response.head
        guard begin(response, head.view, length: length) else { return }
        for index in 0..<pieces.count where state == .writing {
            let piece = pieces[index]
            write(piece.span)
        }
        finish(trailers: nil)
    }

    /// Begins to write a response.
    /// - Returns: whether it is small enough.
    private func begin(_ response: StoredResponse, _ fields: FieldView, length: Int?) -> Bool {
        guard var lead else { return false }
        keeping.vary = varyText(of: fields)
        (keeping.variant, selecting) = variant(under: keeping.vary)
        engine.note(vary: keeping.vary, of: question.keys)
        guard length ?? 0 <= engine.settings.maxObjectSize,
            let record = record(of: response, fields, length: length).written(under: lead.token, seal: engine.seal)
        else { return false }
        let facts = response.facts
        let fresh = max(0, facts.freshUntil - facts.responseTime.monotonic) / 1_000_000
        keeping.fresh = Int(fresh)
        keeping.lifetime = Int(fresh) + 1000 * Int(max(facts.staleWhileRevalidate, facts.staleIfError))
        state = .writing
        let command = lead.head(record)
        self.lead = lead
        send(command, asHead: true)
        return true
    }

    private func record(of response: StoredResponse, _ fields: FieldView, length: Int?) -> TierRecord {
        let (facts, lines, key) = (response.facts, ByteBuffer(capacity: 512), request.key.bytes)
        lines.append("HTTP/1.1 ")
        lines.append(decimal: UInt64(facts.status.code))
        lines.append(" \r\n")
        StoredFields.append(
            fields, facts: facts, policy: request.route.policy, dropping: FieldSet(.contentLength), to: lines)
        if let length {
            lines.append("Content-Length: ")
            lines.append(decimal: UInt64(length))
            lines.appendLineEnd()
        }
        lines.appendLineEnd()
        let age = max(0, facts.responseTime.monotonic - facts.born) / 1_000_000
        var record = TierRecord(key: key, asof: asof, age: UInt64(age), head: lines.copied())
        record.selecting = selecting
        return record
    }

    /// `Vary` in a form that all machines agree on, as lines: the rule can be read from it again.
    private func varyText(of fields: FieldView) -> ByteSlice {
        let (rule, text) = (request.varyRule(fields), ByteBuffer(capacity: 64))
        var count = 0
        for index in 0..<rule.count {
            let name = rule.name(at: index)
            // Nominated by the codings of the response.
            if rule.isByCoding, name.span.isEqual(to: "accept-encoding") { continue }
            text.append(count == 0 ? "Vary: " : ",")
            text.append(name)
            count += 1
        }
        if count > 0 { text.appendLineEnd() }
        guard rule.isByCoding else { return text.copied() }
        var line = fields.firstIndex(of: .contentEncoding)
        while let index = line {
            text.appendField("Content-Encoding", fields.value(at: index))
            line = fields.firstIndex(of: .contentEncoding, from: index + 1)
        }
        return text.copied()
    }

    /// Content has come.
    func contentCame(_ bytes: Span<UInt8>, to fetch: Fetch) {
        guard state == .writing else { return }
        guard lead.map({ $0.length + piece.count + bytes.count <= engine.settings.maxObjectSize }) == true else {
            return giveUp()
        }
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
        while state == .writing, !piece.isEmpty, var lead {
            let count = min(piece.count, TierNumbers.entryLength)
            guard underWay + count <= Self.mostUnderWay else { return giveUp() }
            underWay += count
            shared.counts.add(bytesWritten: count)
            let command = lead.content(ByteSlice(copying: piece.span.extracting(first: count)))
            self.lead = lead
            piece.consume(count)
            engine.send(command, patience: Self.patienceOfLeader) { [weak self] reply in
                guard let self else { return }
                underWay -= count
                guard let reply, let outcome = try? TierOutcome(ofEntry: reply), outcome == .done else {
                    return giveUp()
                }
            }
        }
    }

    /// The content is complete.
    func contentEnded(_ trailers: ByteSlice?, of fetch: Fetch) {
        if state == .writing { finish(trailers: trailers) }
    }

    private func finish(trailers: ByteSlice?) {
        flush()
        guard state == .writing, let lead else { return }
        shared.counts.add(.written)
        send(lead.finish(trailers: trailers ?? .empty, keeping))
        stop()
    }

    private func unshare(for sharing: Sharing) {
        guard let lead else { return }
        var time = Duration.seconds(1)
        if case .nobody = sharing { time = engine.settings.lease }
        send(lead.unshare(for: Int(time.nanoseconds / 1_000_000)))
        stop()
    }

    /// The response is not written, or no more of it.
    private func giveUp() {
        guard state == .leading || state == .writing, let lead else { return }
        shared.counts.add(.givenUp)
        send(lead.release)
        stop()
    }

    private func renewLater() {
        timer = engine.loop.schedule(after: engine.settings.lease.nanoseconds / 3) { [weak self] in
            guard let self, state == .leading || state == .writing, let lead else { return }
            engine.send(lead.renewal, patience: Self.patienceOfLeader) { [weak self] reply in
                guard let self, let reply, let outcome = try? TierOutcome(reply), outcome != .done else { return }
                stop()
            }
            renewLater()
        }
    }

    /// Sends a command of the leader, for whose reply nobody waits.
    private func send(_ command: TierCommand, asHead: Bool = false) {
        engine.send(command, patience: Self.patienceOfLeader) { [weak self] reply in
            guard asHead, let self, state == .writing else { return }
            guard let reply, let outcome = try? TierOutcome(reply), outcome == .done else { return giveUp() }
        }
    }
}

extension FieldView {
    /// Whether the value of any field contains `text`.
    fileprivate func contains(inValues text: Span<UInt8>) -> Bool {
        for index in lines.indices {
            let value = value(at: index)
            guard value.count >= text.count else { continue }
            for start in 0...value.count - text.count
            where value.extracting(start..<start + text.count).isEqual(to: text) { return true }
        }
        return false
    }
}

/// The look-up on which a fetch depends.
struct TierLookUpWork: Work {
    let session: LoopBound<TierSession>

    // No limit delays it, so it begins on the stack of the loop that made the fetch.
    func begin(_ completion: Completion<Void>) { session.value.beginLookUp(completion) }
}
