import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry
import Upstream

/// The work of one fetch: sends the request to the origin, decides at the response's head which clients may have it,
/// fills the body, and stores the response.
///
/// Belongs to the loop of the client that led it and to its `FetchOperation`, which the other loops see.
///
/// ```
/// new ─begin→ asking ─head→ streaming ─end→ over (stored)
///               │ │             └─failure→ over (body failed; the bytes received may be kept as a part)
///               │ ├─head after which the origin is asked again→ asking
///               │ ├─head in whose place a stored response is the answer→ over (validated, or stale)
///               │ ├─head of no use for the waiters→ over (released)
///               │ └─101→ over (the connection is the client's)
///               ├─head, no memory for its content→ awaitingMemory ─memory→ streaming;  ─none→ over (failed)
///               │                                      └─failure→ over (stale, or failed)
///               └─failure→ over (stale, or failed)
/// any ─cancel→ over                   (the bytes received may be kept as a part)
/// ```
///
/// This file has the life cycle and the waiters, `Fetch+Exchange` the events of the exchange. Other types decide:
/// `FetchRequestWriter` on the request that the origin gets, `HeadHandling` on the action after a head, `Placement` on
/// the key of the response, `ArrivingBody` on memory and back-pressure, `Ending` on the meaning of an end.
/// `Announcement` makes the response known, and `ResponseStoring` stores it.
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
    /// The arrival of the request.
    private let arrival: Arrival
    let plan: FetchPlan
    /// Set until the leader leaves or the fetch ends. Not weak: that would make every reference to the leader slow.
    var leader: (any FetchLeader)?
    /// The requests of this loop that wait for the result; the leader is one of them.
    private(set) var waiter: FetchWaiter?
    /// Whether an interim response came that is not for the leader alone.
    private(set) var hasSharedInterims = false
    /// Whether the cancellation of the operation, which waits for its slot, is observed.
    var isObserved = false

    let context: LoopContext
    private(set) var state = State.new
    private(set) var operation: FetchOperation?
    var exchange: Exchange?
    private(set) var sentAt: Moment
    var placement = Placement()
    /// The response, from its head to the end of its body. The waiters have it, unless it awaits memory.
    var fetched: FetchedResponse?
    /// The response whose fields a part is stored with, if not its own (`PartialResponse.keeper`).
    var partKeeper: StoredResponse?
    /// The response's body, from its head on.
    var arriving = ArrivingBody()
    var progress = ProgressCheck()
    /// The conditions that the origin was sent.
    private(set) var conditions = FetchRequestWriter.Conditions.storedAndClients
    /// Content that arrived before the exchange: read ahead, or received while the operation waited for its slot. Held
    /// in memory of the budget.
    private var early: OutgoingContent?
    /// Whether the leader's client still waits for 100 from the origin. If content was read ahead, the client has
    /// already got a 100.
    let awaitsContinue: Bool
    /// Whether the fetch continues when its last client leaves: the operation's policy, as far as the fetch has set it.
    private var continuesWithoutClients: Bool

    /// The method that the origin is sent.
    var method: Method { plan.method(for: request) }

    /// The key under which the response belongs.
    var storeKey: CacheKey { placement.otherKey ?? request.key }

    /// Whether an invalidation concerns the response: the fetch may neither store it nor share it with later requests.
    /// See `SharedState.invalidate`. Called under the lock of a shard of the store, too.
    var wasInvalidated: Bool {
        guard let operation else { return true }
        if operation.wasInvalidated { return true }
        // An invalidation finds no operation that was cancelled, and none by a key that it does not have yet.
        guard operation.hasEnded || (placement.otherKey != nil && !placement.isFoundByOtherKey) else { return false }
        let sent = request.sentKey.bytes
        return context.variations.wasInvalidated(sent.span, since: placement.formerInvalidations)
    }

    /// Whether an earlier fetch, which the leader's request had joined, brought a response that only its own leader
    /// could have. Then a status that concerns the request concerns them all, and the next requests must not wait for
    /// one another.
    var leaderWasReleased: Bool { leader?.wasReleased == true }

    /// Whether the response is written as events occur, so that silence does not mean that the origin is in trouble.
    var isIncremental: Bool { fetched?.response.facts.contains(.isIncremental) ?? false }

    /// Whether the operation got its slot.
    var hasBegun: Bool { state != .new }

    // The parameters are borrowed, and copied where they are kept: the caller would also retain a parameter that the
    // initializer consumes.
    init(
        _ request: borrowing ClientRequest, _ arrival: Arrival, plan: borrowing FetchPlan,
        context: borrowing LoopContext,
        leader: (any FetchLeader)?, content: consuming OutgoingContent?
    ) {
        awaitsContinue = content == nil && request.awaitsContinue
        early = content
        self.request = copy request
        self.arrival = arrival
        self.leader = leader
        self.plan = copy plan
        self.context = copy context
        continuesWithoutClients = plan.isRefresh
        sentAt = arrival.time
        super.init()
    }

    // MARK: Beginning and ending

    /// The only way into a state.
    func enter(_ next: State) {
        assert(state.leads(to: next), "\(state) does not lead to \(next)")
        state = next
    }

    func begin(for operation: FetchOperation) {
        guard state == .new, !operation.hasEnded else { return }
        enter(.asking)
        self.operation = operation
        progress.last = context.now
        if plan.isShared {
            if context.settings.coalescing.whenLastLeaves == .finish { setContinues(withoutClients: true) }
            if request.route.isCoalesced { progress = progress.begun(for: self) }
        }
        ask()
        if request.hasContent { leader?.fetchTakesContent(self) }
    }

    /// Sends the request to the origin; after a 304 that did not help, once more. The 304 has no content, so its
    /// exchange ends by itself and the connection is used again.
    func ask(_ conditions: FetchRequestWriter.Conditions = .storedAndClients) {
        sentAt = context.moment
        placement.formerInvalidations = context.variations.invalidations
        var conditions = conditions
        var writer = FetchRequestWriter(
            settings: context.loopSettings, arrival: arrival, awaitsContinue: awaitsContinue, hasLeader: leader != nil)
        let asked = writer.write(request, for: plan, under: &conditions, in: context.scratch)
        if writer.removesFields { context.notices.removed(writer.removedFields(of: request, for: plan), from: arrival) }
        self.conditions = conditions
        let owner = request.isBound ? leader?.boundConnections ?? .closed : nil
        let exchange = Exchange(
            asked, pool: context.pool(for: request.route), handler: self, owner: owner, early: early.take())
        exchange.start()
        self.exchange = exchange
    }

    /// The leader gets no more calls.
    func forgetLeader() { leader = nil }

    /// The only way to an end. A later call has no effect.
    func end(_ ending: Ending) {
        guard state != .over else { return }
        let isHandedOut = state == .streaming
        enter(.over)
        arriving = arriving.leavingLine()
        if isHandedOut, ending.breaksBody, let fetched { breakBody(of: fetched, ending) }
        // Moved out of the property: a use in place would retain the object.
        fetched.take()?.noteEnd(at: context.moment)
        if plan.isShared {
            // A response that was handed out has ended them.
            if !isHandedOut { operation?.elsewhere.endInterims() }
            progress = progress.cancelled(on: context.deadlines)
        }
        let error = ending.error
        leader = nil
        let cut = ending.cutsExchange ? exchange : nil
        exchange = nil
        let operation = operation.take()
        if let error { operation?.finish(.failure(error)) } else { operation?.finish() }
        // After the operation has left the table: a request that looks up again must not find it.
        if let error { waiter.take()?.received(.failure(error)) }
        cut?.cancel()
    }

    /// The response that was handed out ends short, and is never stored as whole (RFC 9111 §3.3).
    private func breakBody(of fetched: FetchedResponse, _ ending: Ending) {
        // Before its readers are told.
        if case .truncated(let shortfall, _) = ending { fetched.noteShortfall(shortfall) }
        fetched.response.looseBody?.fail()
        if ending.mayKeepPart { ResponseStoring(of: self)?.storeReceivedPart(of: fetched) }
    }

    // MARK: Waiters

    /// Gives the response to all waiters.
    func deliver(_ fetched: consuming FetchedResponse) {
        operation?.deliver(fetched)
        waiter.take()?.received(.success(fetched))
    }

    /// From now on `waiter` stands for the requests of this loop.
    /// - Returns: whether the fetch has begun.
    func gather(_ waiter: FetchWaiter) -> Bool {
        self.waiter = waiter
        return hasBegun
    }

    /// Passes an interim response to all that wait but the leader.
    func share(interim: ByteSlice) {
        hasSharedInterims = true
        waiter?.received(interim: interim)
        operation?.elsewhere.append(interim)
    }

    /// The requests of `waiter` have left.
    func forget(_ waiter: FetchWaiter) {
        if self.waiter === waiter { self.waiter = nil }
    }

    /// Sets whether the fetch outlives its last client. If it may not and no client is left, the fetch ends now.
    func setContinues(withoutClients continues: Bool) {
        guard let operation else { return }
        let changes = continues != continuesWithoutClients
        if changes {
            continuesWithoutClients = continues
            operation.lastLeavePolicy = continues ? .goOn : .cancel
        }
        // Under an unchanged policy the last client that left has ended the fetch, but released requests do not leave.
        if !continues, changes || plan.isShared { operation.cancelIfUnattended() }
    }

    // MARK: Content of the client's request

    /// Whether content waits in the fetch for the slot.
    var hasEarlyContent: Bool { early.map { $0.count > 0 } ?? false }

    /// Takes content before the fetch has its slot, to send it then.
    /// - Returns: false if there is no memory for the content.
    func bufferEarly(_ content: Span<UInt8>) -> Bool { earlyContent().append(content, reservingOf: context.shared) }

    /// Sends content once the fetch has its slot.
    /// - Returns: false if enough content waits to be sent: wait for `fetchTakesContent`.
    func send(_ content: Span<UInt8>) -> Bool {
        // Once the response was delivered, the rest of the content is read and dropped.
        exchange?.send(content) ?? true
    }

    func endContent(trailers: ByteSlice?) {
        if let exchange {
            exchange.endContent(trailers: trailers)
        } else if state == .new {
            earlyContent().end(trailers: trailers)
        }
    }

    /// The buffer for content before the slot; made when the first content comes.
    private func earlyContent() -> OutgoingContent {
        let content = early ?? OutgoingContent(UpstreamRequest.Content(request.head.framing))
        early = content
        return content
    }

    // MARK: Time

    override func deadlineReached() -> Int64? {
        let (outcome, left) = progress.reached(for: self, isPaused: arriving.isPaused)
        progress = left
        switch outcome {
        case .goesOn(let next):
            return next
        case .standsStill:
            // An incremental response is not overtaken: each request in a quiet hour would open another stream.
            if state == .streaming, isIncremental { return nil }
            // The waiters stay; the next request starts another fetch.
            if operation?.close() == true { context.metrics.add(.coalescing(.overtaken)) }
            return nil
        }
    }
}
