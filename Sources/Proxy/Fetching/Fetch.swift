import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Telemetry
import Upstream

/// The request that led a fetch, on the same loop: content, upgrades and what concerns nobody else go through it.
protocol FetchLeader: AnyObject {
    /// Whether a fetch that it waited for before this one brought what it could not have.
    var wasReleased: Bool { get }
    /// The connections to origins that are its client connection's own: from the first call on it has some.
    var boundConnections: BoundConnections { get }
    /// Content that was held back is out: send more.
    func fetchTakesContent(_ fetch: Fetch)
    /// An interim response as it goes to the client.
    func fetch(_ fetch: Fetch, received interim: ByteSlice)
    /// The origin switched protocols; `head` is the 101 as it goes to the client, with what came behind it.
    func fetch(_ fetch: Fetch, upgradedTo connection: UpstreamConnection, head: ByteBuffer)
    /// The outcome of a fetch that is for this request alone; at most once, and not after it has left. Send nothing
    /// from inside the call.
    func fetch(_ fetch: Fetch, brings result: consuming Result<FetchedResponse, OperationError>)
    /// The origin confirmed what only this client has: it gets this answer and leaves; the others go on waiting.
    func fetch(_ fetch: Fetch, answers response: FetchedResponse)
}

/// One fetch at work: asks the origin, decides at the response's head who may have it, fills the body, stores it.
///
/// Belongs to the loop of the client that led it and to its `FetchOperation`, which the other loops see.
///
/// ```
/// new ─begin→ asking ─head→ streaming ─end→ over (stored)
///               │ │            └─failure→ over (body failed; what came may be kept as a part)
///               │ ├─304 about what is stored→ over (validated);  304 about nothing stored→ asking, without conditions
///               │ ├─304 for the leader alone→ asking, for the others; over if there are none
///               │ ├─304 about parts that are not all that is wanted by it→ over (released)
///               │ ├─5xx with a usable stale response→ over (stale)
///               │ ├─a whole too large for who wanted a range, a part that does not fit→ over (released)
///               │ └─101→ over (the connection is the client's)
///               ├─head, no memory for its content→ awaitingMemory ─memory→ streaming;  ─none→ over (failed)
///               │                                      └─failure→ over (stale, or failed)
///               └─failure→ over (stale, or failed)
/// any ─cancel→ over                   (what came may be kept as a part)
/// ```
///
/// Here stand its life and those who get what it brings. What it does on the way stands in extensions, in this order:
/// `Fetch+Head` (what the origin answers: from `asking` to `streaming`), `Fetch+Response` (what is made of a response's
/// head), `Fetch+Announcing` (what others find of a response whose head is there), `Fetch+Body` (the body, and into the
/// store: from `streaming` to `over`).
/// The extensions act; what is to be done is said by values that need no worker, and own what only they use:
///
/// | what | is said by |
/// | --- | --- |
/// | the request that the origin gets | `FetchRequestWriter` |
/// | who may have the response, whether it is stored, how much of its body is kept | `HeadDecision` |
/// | under which key it belongs, and whether that was invalidated | `Placement` |
/// | what an answer does to what is stored | `Revalidation` |
/// | what a part and the stored ones make together | `PartialResponse` |
/// | how much of the body is kept by now, and what it waits for | `ArrivingBody` |
/// | whether the leader of a fetch that is for it alone still waits | `Recipients` |
/// | what an end means for those who wait and those who read, for the store and the exchange | `Ending` |
final class Fetch: DeadlineTarget {
    enum State {
        case new, asking, awaitingMemory, streaming, over

        fileprivate func leads(to next: State) -> Bool {
            switch self {
            case .new: next == .asking || next == .over
            case .asking: next == .awaitingMemory || next == .streaming || next == .over
            case .awaitingMemory: next == .streaming || next == .over
            case .streaming: next == .over
            case .over: false
            }
        }
    }

    let request: ClientRequest
    let plan: FetchPlan
    /// Until either ends. Not weak: that would make every reference to the leader slow.
    private(set) var leader: (any FetchLeader)?

    let worker: Worker
    private(set) var state = State.new
    private(set) var operation: FetchOperation?
    private(set) var exchange: Exchange?
    private(set) var sentAt: Moment
    var placement: Placement
    /// What its waiters got, while its body arrives.
    private(set) var fetched: FetchedResponse?
    /// What they are to get, while there is no memory for the first of its content.
    private(set) var undelivered: FetchedResponse?
    /// Under whose fields a part is stored, if not under its own (`PartialResponse.keeper`).
    var partKeeper: StoredResponse?
    /// The response's body, from its head on.
    var arriving = ArrivingBody()
    /// Where it stands in line for memory.
    var memoryPlace: MemoryLine.Place?
    /// The origin's last sign of life, in nanoseconds of the loop's clock.
    private var lastProgress: Int64 = 0
    /// Under which the origin was asked.
    private(set) var conditions = FetchRequestWriter.Conditions.storedAndClients
    /// Content of the request that is here before the exchange: read ahead, or come while the operation waited for its
    /// slot. In memory of the budget.
    private var early: OutgoingContent?
    /// Whether its client still waits for 100 from the origin. Where content was read ahead it has got that.
    let awaitsContinue: Bool
    private var recipients: Recipients
    private var progressDeadline = LazyDeadline<Void>()

    /// What the origin is asked.
    var method: Method { plan.method(for: request) }

    /// How much of the body is kept.
    var keeping: ArrivingBody.Keeping { arriving.keeping }

    /// The one whose body arrives.
    var response: StoredResponse? { fetched?.response }

    /// Whether its response is written as things happen, so that silence is no sign of an origin in trouble.
    var isIncremental: Bool { (fetched ?? undelivered)?.response.facts.contains(.isIncremental) ?? false }

    /// Whether its operation got its slot.
    var hasBegun: Bool { state != .new }

    // Borrowed, and copied where it is kept: what an initializer takes over its caller retains as well.
    init(
        _ request: borrowing ClientRequest, plan: borrowing FetchPlan, worker: borrowing Worker,
        leader: (any FetchLeader)?, content: consuming OutgoingContent?
    ) {
        awaitsContinue = content == nil && request.awaitsContinue
        early = content
        self.request = copy request
        self.leader = leader
        self.plan = copy plan
        self.worker = copy worker
        recipients = plan.isShared ? .waiters : .leader(.waiting, isDispensable: false)
        sentAt = request.arrived
        placement = Placement(self.worker.generations(for: self.request))
        super.init()
    }

    /// Whether the leader's request was to go past the cache by one of its cookies: by the settings that it came under
    /// (`request.hasPassCookie`), or by those that came since. Nearly always two bits tell.
    @inline(__always)
    var hasPassCookieByNow: Bool { request.hasPassCookie || (request.hasCookies && hasPassCookieSinceReload) }

    private var hasPassCookieSinceReload: Bool {
        let fields = request.fields
        let route = worker.loopSettings.route(request.head, fields.view)
        return route !== request.route && route.hasPassCookie(fields.view)
    }

    // MARK: Beginning and ending

    /// The only way into a state.
    private func enter(_ next: State) {
        assert(state.leads(to: next), "\(state) does not lead to \(next)")
        state = next
    }

    func begin(for operation: FetchOperation) {
        guard state == .new, !operation.hasEnded else { return }
        enter(.asking)
        self.operation = operation
        progressed(at: worker.now)
        if plan.isShared {
            if worker.settings.coalescing.whenLastLeaves == .finish { operation.lastLeavePolicy = .goOn }
            if request.route.isCoalesced { armProgressCheck(after: patience) }
        }
        ask()
        if request.hasContent { leader?.fetchTakesContent(self) }
    }

    /// Asks the origin; after a 304 that did not help, once more. The 304 has no content, so its exchange ends by
    /// itself and the connection is used again.
    func ask(_ conditions: FetchRequestWriter.Conditions = .storedAndClients) {
        sentAt = worker.moment
        var conditions = conditions
        var writer = FetchRequestWriter(
            settings: worker.loopSettings, awaitsContinue: awaitsContinue, hasLeader: leader != nil)
        let asked = writer.write(request, for: plan, under: &conditions, in: worker.scratch)
        if writer.removesFields { worker.notices.removed(writer.removedFields(of: request, for: plan), from: request) }
        self.conditions = conditions
        let owner = request.isBound ? leader?.boundConnections ?? .closed : nil
        let exchange = Exchange(
            asked, pool: worker.pool(for: request.route), handler: self, owner: owner, early: early.take())
        exchange.start()
        self.exchange = exchange
    }

    /// The leader is told nothing more.
    func forgetLeader() { leader = nil }

    /// The leader got a 304 that is for it alone; that one's exchange ends by itself.
    func leaderIsAnswered() {
        leader = nil
        exchange = nil
    }

    /// The head of a response is there that those who wait will get.
    func enterStreaming(with fetched: FetchedResponse) {
        enter(.streaming)
        self.fetched = fetched
    }

    /// The head of a response is there, but nobody is told anything of it yet.
    func enterAwaitingMemory(with fetched: FetchedResponse) {
        enter(.awaitingMemory)
        undelivered = fetched
    }

    /// What awaits memory, to be handed out now.
    func takeUndelivered() -> FetchedResponse? { state == .awaitingMemory ? undelivered.take() : nil }

    /// The only way to an end. Whatever comes later is too late, and changes nothing.
    func end(_ ending: Ending) {
        guard state != .over else { return }
        undelivered = nil
        stopWaitingForMemory()
        enter(.over)
        if ending.breaksBody, let fetched { breakBody(of: fetched, ending) }
        // Moved out, not reached through here, which would be retained.
        fetched.take()?.noteEnd(at: worker.moment)
        if plan.isShared {
            operation?.interims.end()
            progressDeadline = progressDeadline.cancelled(on: worker.deadlines)
        }
        let error = ending.error
        if let error { tellLoneLeader(.failure(error)) }
        leader = nil
        let cut = ending.cutsExchange ? exchange : nil
        exchange = nil
        let operation = operation.take()
        if let error { operation?.finish(.failure(error)) } else { operation?.finish() }
        cut?.cancel()
    }

    /// What was handed out ends short, and is never stored as whole (RFC 9111 §3.3).
    private func breakBody(of fetched: FetchedResponse, _ ending: Ending) {
        // Before its readers are told.
        if case .truncated(let shortfall, _) = ending { fetched.noteShortfall(shortfall) }
        fetched.response.looseBody?.fail()
        if ending.mayKeepPart { keepWhatArrived(of: fetched.response) }
    }

    // MARK: Those who get what it brings

    /// To all who wait.
    func deliver(_ fetched: consuming FetchedResponse) {
        operation?.deliver(fetched)
        tellLoneLeader(.success(fetched))
    }

    /// To the leader of a fetch that is for it alone; others are told by the operation.
    private func tellLoneLeader(_ result: consuming Result<FetchedResponse, OperationError>) {
        guard recipients.leaderTakesOutcome() else { return }
        leader?.fetch(self, brings: consume result)
    }

    /// The leader of a fetch that is for it alone leaves.
    /// - Returns: whether it still waited.
    func leaderLeaves(_ operation: FetchOperation) -> Bool {
        leader = nil
        let left = recipients.leaderLeaves()
        if state != .over, !left.isDispensable { operation.cancel() }
        return left.wasWaiting
    }

    /// Sets whether the fetch outlives its last client. If it must not and none is left, it ends now.
    func setMayGoOn(unattended mayGoOn: Bool) {
        switch recipients {
        case .waiters:
            guard let operation else { return }
            operation.lastLeavePolicy = mayGoOn ? .goOn : .cancel
            if !mayGoOn { operation.cancelIfUnattended() }
        case .leader(let presence, _):
            recipients = .leader(presence, isDispensable: mayGoOn)
            if !mayGoOn, presence == .gone { operation?.cancel() }
        }
    }

    // MARK: Content of the client's request

    /// Whether content waits here for the slot.
    var hasEarlyContent: Bool { early.map { $0.count > 0 } ?? false }

    /// Takes content before it has its slot, to send it then.
    /// - Returns: false when there is no memory for it.
    func bufferEarly(_ content: Span<UInt8>) -> Bool { earlyContent().append(content, reservingOf: worker.shared) }

    /// Once it has its slot.
    /// - Returns: false when enough waits to be sent: wait for `fetchTakesContent`.
    func send(_ content: Span<UInt8>) -> Bool {
        // Where the answer has been given, the rest is read and dropped.
        exchange?.send(content) ?? true
    }

    func endContent(trailers: ByteSlice?) {
        if let exchange {
            exchange.endContent(trailers: trailers)
        } else if state == .new {
            earlyContent().end(trailers: trailers)
        }
    }

    /// Where it waits; made when the first comes.
    private func earlyContent() -> OutgoingContent {
        let content = early ?? OutgoingContent(UpstreamRequest.Content(request.head.framing))
        early = content
        return content
    }

    // MARK: Time

    /// The origin gave a sign of life.
    func progressed(at now: Int64) { lastProgress = now }

    /// How long the origin may stand still, in nanoseconds: at least a tick, since the wheel tells no shorter times
    /// apart, and an origin that sends all the time would seem to stand still whenever it looks.
    private var patience: Int64 {
        max(worker.settings.coalescing.overtakeAfter.nanoseconds, DeadlineWheel.Settings.tick)
    }

    /// After that time, checks whether the origin stands still.
    private func armProgressCheck(after nanoseconds: Int64) {
        let time = worker.now + nanoseconds
        progressDeadline = progressDeadline.awaiting((), until: time, for: self, on: worker.deadlines)
    }

    override func deadlineReached() -> Int64? {
        let (reached, left) = progressDeadline.reached(at: worker.now)
        progressDeadline = left
        switch reached {
        case .nothing: return nil
        case .later(let time): return time
        case .due: break
        }
        guard state == .asking || state == .awaitingMemory || state == .streaming, let operation else { return nil }
        // Nor is it overtaken: each request that comes in a quiet hour would open another stream.
        if state == .streaming, isIncremental { return nil }
        // While the readers hold it back, the origin cannot show progress.
        let stillFor = arriving.isPaused ? 0 : worker.now - lastProgress
        if stillFor < patience {
            armProgressCheck(after: patience - stillFor)
        } else if operation.close() {
            // Those who wait stay; the next request starts another fetch.
            worker.metrics.add(.coalescing(.overtaken))
        }
        return nil
    }
}
