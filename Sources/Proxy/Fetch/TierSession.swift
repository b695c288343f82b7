import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Routing
import SharedTier
import Telemetry
import Upstream

/// One fetch's part in the shared tier: it looks up the response, and then follows the machine that fetches it, or leads
/// the fetch for all.
///
/// The operation of the fetch depends on the look-up (`TierLookUpWork`): it takes no slot of the origin before the answer,
/// and none at all if another machine has the response. If the origin is to be asked after all, the session takes a slot
/// for the fetch (`turn`). Owned by its fetch, confined to the fetch's loop.
///
/// ```
/// asking ─another Vary→ asking
///   ├─hit, join→ found ─the fetch begins→ following ─the end of the body→ over
///   │                                        ├─a stored response is of no use, or its leader went before the head→ asking (the fetch waits)
///   │                                        ├─what another machine writes is of no use→ over (the origin is asked)
///   │                                        ├─another machine has the body→ atPeer ─the end of the body→ over
///   │                                        │                                 └─no response→ over (the origin is asked)
///   │                                        ├─the response is not for this machine→ over (the origin is asked)
///   │                                        └─the body breaks off, here or atPeer→ over (the origin is asked for the rest)
///   ├─lead→ leading (TierLeader) ─the fetch ends→ over
///   ├─the response is for each request alone, or a stale one was stored here→ released ─the fetch begins→ over (its waiters look up again)
///   └─not for other machines, no answer in time→ over
/// ```
///
/// Whatever the engine does, the fetch goes on: at the worst as if there were no tier.
final class TierSession {
    private enum State {
        case asking
        case found(TierFollower)
        case following(TierFollower)
        case atPeer(TierPeer)
        case leading(TierLeader)
        /// The waiters look up again. For so many nanoseconds the response is for each request alone.
        case released(Int64)
        case over
    }

    /// How often one fetch looks up: for `Vary`, and after leaders that broke off.
    private static let mostLookUps = 5

    let engine: TierEngine
    let shared: SharedTierState
    let request: ClientRequest
    /// The last purge that was known before the origin could be asked.
    let asof: TierPurgeID
    private var question: TierLookUp
    private var state = State.asking
    private var lookUps = 0
    /// The engine's clock minus the loop's, in milliseconds. Nodes of a cluster have clocks of their own.
    private var clockLead: Int64 = 0
    /// Ends the look-up.
    private var lookUp: Completion<Void>?
    /// Set during the look-up. (A weak reference would make each later use of the object slow.)
    private var operation: FetchOperation?
    /// Set once the fetch has begun without a slot, until the fetch ends.
    private var fetch: Fetch?
    /// The slot of the origin, or the wait for it, of a fetch that began without one.
    private var turn: PlainOperation?
    private var onTurn: ((Fetch) -> Void)?

    /// `nil` if a fetch by `plan` does without the tier: its response is not for others, or the engine does not answer.
    init?(_ engine: TierEngine, for plan: borrowing FetchPlan, _ shared: SharedTierState) {
        guard engine.isAvailable, Self.serves(plan),
            let cursor = shared.history.withLock({ $0.isCurrent ? $0.cursor : nil })
        else { return nil }
        self.shared = shared
        asof = cursor
        self.engine = engine
        request = plan.request
        let key = plan.request.sentKey.bytes
        question = TierLookUp(engine.keys(of: key.span))
        question.token = engine.mayLead ? engine.nextToken() : nil
    }

    /// Whether a fetch by `plan` consults the tier.
    static func serves(_ plan: borrowing FetchPlan) -> Bool {
        guard plan.isShared, case .get(isAuthorized: false) = plan.key.kind, plan.key.visits == 0 else { return false }
        // A client that wants a response validated, or a young one, gets none that others have stored.
        let directives = plan.request.directives
        return plan.request.route.isCached && !plan.request.hasContent && directives.flags.isEmpty
    }

    /// The engine's time in milliseconds.
    var engineTime: Int64 { clockLead + engine.loop.now / 1_000_000 }

    /// The part of a fetch that this machine leads; `nil` if it does not lead, or no more.
    var leader: TierLeader? { if case .leading(let leader) = state { leader } else { nil } }

    /// The latest `Vary` of the resource is this.
    func note(vary: ByteSlice) { engine.note(vary: vary, of: question.keys) }

    /// What stands in the engine is not used.
    func noteRefusal(_ refusal: TierRefusal) {
        (fetch ?? operation?.work.value)?.context.notices.refused(refusal, of: request)
    }

    // MARK: The look-up

    /// Begins the look-up before `operation`, which is not in the table yet, if its fetch needs one.
    static func lookUp(before operation: FetchOperation, _ engine: TierEngine, _ shared: SharedTierState) {
        operation.work.use { fetch in
            fetch.tier = TierSession(engine, for: fetch.plan, shared)
            fetch.tier?.lookUp(before: operation)
        }
    }

    private func lookUp(before operation: FetchOperation) {
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
        question.variant = request.tierVariant(under: question.vary).name
        engine.send(question.command(lease: engine.leaseMilliseconds)) { [self] reply in
            // The fetch may have ended meanwhile.
            guard case .asking = state else { return }
            guard let reply, let answer = try? TierAnswer(reply) else { return noAnswer() }
            clockLead = answer.now - engine.loop.now / 1_000_000
            take(answer)
        }
    }

    /// The engine may have made this machine the leader all the same.
    private func noAnswer() {
        shared.counts.add(.unanswered)
        if let token = question.token { release(token) }
        lookedUp(.over)
    }

    private func release(_ token: ByteSlice) {
        engine.release(
            TierLead(question.keys, variant: question.variant, token: token, lease: engine.leaseMilliseconds))
    }

    /// Stores a stale response from the engine here, if this machine has none: the requests that wait look up again, and
    /// the rules for stale responses, which have their effect at that look-up, are the same as on one machine.
    private func adopt(_ stale: TierStored) -> Bool {
        guard let operation, lookUp != nil else { return false }
        return operation.work.use { fetch in
            fetch.plan.former == nil && !request.isUnderVariation
                && TierAdoption(of: fetch, operation, by: self).adopt(stale)
        }
    }

    private func take(_ answer: TierAnswer) {
        if let stale = answer.stored, answer.verdict != .hit, adopt(stale) {
            if case .lead = answer.verdict, let token = question.token { release(token) }
            return lookedUp(.released(0))
        }
        switch answer.verdict {
        case .vary(let vary):
            guard lookUps < Self.mostLookUps, vary.count <= TierNumbers.mostVary, vary.span.isFieldLines else {
                return lookedUp(.over)
            }
            engine.note(vary: vary, of: question.keys)
            ask()
        case .hit:
            guard let stored = answer.stored else { return lookedUp(.over) }
            shared.counts.add(.hit)
            lookedUp(.found(TierFollower(of: self, question, reading: stored)))
        case .join(let token, _):
            shared.counts.add(.joined)
            lookedUp(.found(TierFollower(of: self, question, after: token)))
        case .lead:
            guard let token = question.token else { return lookedUp(.over) }
            shared.counts.add(.led)
            let former = answer.stored.flatMap { self.former($0) }
            lookedUp(.leading(TierLeader(for: self, question, token, after: former)))
        case .alone(let left, let isForOne):
            shared.counts.add(.unshareable)
            lookedUp(isForOne ? .released(min(max(0, left), 60_000) * 1_000_000) : .over)
        case .miss:
            lookedUp(.over)
        }
    }

    private func former(_ stale: TierStored) -> TierLeader.Former? {
        var reader = TierReader(stale.token, seal: engine.seal)
        guard let pieces = try? reader.read(stale.entries), case .head(let bytes, _)? = pieces.first,
            case .good(let offer) = judge(
                stale.freshened ?? bytes, under: stale.token, at: stale.at, length: stale.length)
        else { return nil }
        var drop = question
        (drop.token, drop.broken) = (nil, stale.token)
        return TierLeader.Former(
            token: stale.token, length: stale.length, head: offer.head,
            drop: drop.command(lease: engine.leaseMilliseconds))
    }

    /// A look-up has ended.
    private func lookedUp(_ next: State) {
        state = next
        switch next {
        case .found, .released: operation?.raisePriority(to: .immediate)
        case .asking, .following, .atPeer, .leading, .over: break
        }
        operation = nil
        if let lookUp = lookUp.take() {
            lookUp.finish(.success(()))
            return
        }
        // The fetch waits for this look-up, which is not its first one.
        guard let fetch else { return }
        if case .leading = next { return askOrigin() }
        if !begin(for: fetch) { askOrigin() }
    }

    // MARK: The fetch

    /// The operation of the fetch has begun.
    /// - Returns: whether the fetch needs no origin for now.
    func begin(for fetch: Fetch) -> Bool {
        switch state {
        case .found(let follower):
            state = .following(follower)
            self.fetch = fetch
            fetch.noteAsking()
            follower.begin(for: fetch) { [unowned self] in followerEnded($0) }
            return true
        case .released(let time):
            if time > 0 { Announcement(of: fetch).rememberUnshareable(for: time) }
            // Not from inside the call that begins the fetch.
            let loop = engine.loop
            loop.atIterationEnd { fetch.end(.released) }
            return true
        case .leading(let leader):
            leader.hasBegun = true
            return false
        case .asking, .following, .atPeer, .over:
            return false
        }
    }

    /// The fetch has room for more content.
    func resume() {
        switch state {
        case .following(let follower): follower.resume()
        case .atPeer(let peer): peer.resume()
        case .asking, .found, .leading, .released, .over: break
        }
    }

    /// The fetch is over.
    /// - Parameter isFailure: whether the origin gave no response: the other machines are not to try one after another.
    func fetchEnded(isFailure: Bool) {
        fetch = nil
        switch state {
        case .asking: noAnswer()
        case .following(let follower): follower.stop()
        case .atPeer(let peer): peer.stop()
        case .leading(let leader): isFailure ? leader.noteFailure() : leader.giveUp()
        case .found, .released, .over: break
        }
        state = .over
        turn.take()?.finish()
    }

    private func followerEnded(_ end: TierFollower.End) {
        guard let fetch, case .following(let follower) = state else { return }
        state = .over
        switch end {
        case .complete(let trailers):
            fetch.ended(with: trailers)
        case .otherVariant:
            lookAgain(without: .empty)
        case .useless:
            shared.counts.add(.refused)
            // A machine that still writes keeps its lease: others may have the head, and read on.
            follower.readsStored ? lookAgain(without: follower.token) : askOrigin()
        case .broken(hasHead: false):
            shared.counts.add(.broken)
            lookAgain(without: follower.token)
        case .broken(hasHead: true):
            shared.counts.add(.broken)
            askOriginForRest(after: UpstreamError(.body, detail: "the shared tier has no more of the response"))
        case .unanswered:
            shared.counts.add(.unanswered)
            askOrigin()
        case .notForThisMachine:
            shared.counts.add(.refused)
            fetch.context.notices.notForAll(request)
            askOrigin()
        case .elsewhere(let offer):
            // Without a seal, whoever writes to the engine could have this machine ask any host.
            guard engine.advertised != nil, let own = engine.settings.advertised,
                let server = UpstreamServer(hostAndPort: String(offer.record.elsewhere)), server != own
            else { return askOrigin() }
            let peer = TierPeer(of: fetch, expecting: offer) { [unowned self] in peerEnded($0) }
            state = .atPeer(peer)
            peer.ask(fetch.context.pools.machine(at: server), for: follower.token)
        }
    }

    private func peerEnded(_ end: TierPeer.End) {
        guard case .atPeer = state else { return }
        state = .over
        shared.counts.add(.broken)
        switch end {
        case .noResponse: askOrigin()
        case .broken(let error): askOriginForRest(after: error)
        }
    }

    /// Looks up once more; the fetch waits.
    /// - Parameter broken: the token of what is of no use.
    private func lookAgain(without broken: ByteSlice) {
        question.broken = broken
        guard lookUps < Self.mostLookUps, engine.isAvailable else { return askOrigin() }
        question.token = engine.mayLead ? engine.nextToken() : nil
        ask()
    }

    // MARK: The origin after all

    private func askOrigin() { takeTurn { $0.ask() } }

    private func askOriginForRest(after error: UpstreamError) { takeTurn { $0.failed(with: error) } }

    /// Calls `go` as soon as the fetch has a slot of its origin, for which it waits as long as a request may.
    private func takeTurn(_ go: @escaping (Fetch) -> Void) {
        guard let fetch else { return }
        let bound = LoopBound(self, on: engine.loop)
        let operation = PlainOperation { _ in bound.handle.post { bound.value.hasTurn() } }
        (turn, onTurn) = (operation, go)
        let queue = fetch.context.fetches(of: request)
        guard case .refused = queue.enqueue(plain: operation, priority: fetch.plan.isRefresh ? .background : .normal)
        else {
            let longest = fetch.context.settings.coalescing.waitTimeout.nanoseconds
            engine.loop.schedule(after: longest) { [weak self] in self?.noTurn("no slot of the origin in wait-timeout")
            }
            return
        }
        noTurn("too many fetches wait for the origin")
    }

    /// The fetch does not wait any longer for a slot. What its readers have of a body stays without the rest.
    private func noTurn(_ reason: String) {
        guard let fetch, onTurn.take() != nil else { return }
        turn.take()?.finish()
        if fetch.state.isHandedOut { return fetch.end(.truncated(.origin(.body, nil), keepsPart: true)) }
        fetch.failed(with: UpstreamError(.unavailable, .noServer, detail: reason))
    }

    private func hasTurn() {
        guard let fetch, let go = onTurn.take() else { return }
        leader?.hasBegun = true
        go(fetch)
    }
}

/// The look-up on which a fetch depends.
struct TierLookUpWork: Work {
    let session: LoopBound<TierSession>

    // No limit delays it, so it begins on the stack of the loop that made the fetch.
    func begin(_ completion: Completion<Void>) { session.value.beginLookUp(completion) }
}
