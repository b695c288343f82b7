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
///               │ │             ├─failure→ over (body failed; the bytes received may be kept as a part)
///               │ │             └─failure, rest requested→ resuming ─206 with the rest→ streaming
///               │ │                                            └─another response, failure→ over (as above)
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
/// This file has the life cycle, `Fetch+Exchange` the events of the exchange. Values decide: `FetchRequestWriter` on the
/// request that the origin gets, `HeadHandling` on the action after a head, `Placement` on the key of the response,
/// `ArrivingBody` on memory and back-pressure, `Continuation` on the time after the last client. `Announcement` makes the
/// response known, `ResponseStoring` stores it, `Resumption` requests the rest of one that broke off.
final class Fetch: DeadlineTarget {
    enum State {
        case new, asking, awaitingMemory, streaming, resuming, over

        /// Whether the waiters have the response, whose body has not ended.
        var isHandedOut: Bool { self == .streaming || self == .resuming }

        fileprivate func leads(to next: State) -> Bool {
            switch self {
            case .new: next == .asking || next == .over
            case .asking: next == .awaitingMemory || next == .streaming || next == .over
            case .awaitingMemory: next == .streaming || next == .over
            case .streaming: next == .resuming || next == .over
            case .resuming: next == .streaming || next == .over
            case .over: false
            }
        }
    }

    let plan: FetchPlan
    /// The arrival of the request that led.
    let arrival: Arrival
    /// Set until the leader leaves or the fetch ends. Not weak: that would make every reference to the leader slow.
    var leader: (any FetchLeader)?
    /// The requests of this loop that wait for the result; the leader is one of them.
    var waiter: FetchWaiter?
    /// Whether an interim response came that is not for the leader alone.
    var hasSharedInterims = false
    /// Whether the cancellation of the operation, which waits for its slot, is observed.
    var isObserved = false
    private(set) var state = State.new

    let context: LoopContext
    private(set) var operation: FetchOperation?
    var exchange: Exchange?
    /// When the origin was asked, and how many purges of tags there had been.
    private(set) var sentAt: Moment, generation: UInt64 = 0
    var placement = Placement()
    /// The response, from its head to the end of its body. The waiters have it, unless it awaits memory.
    var fetched: FetchedResponse?
    /// The response's body, from its head on.
    var arriving = ArrivingBody()
    /// `nil` if the rest of the response would not be requested, should its body break off.
    var resumption: Resumption?
    var progress = ProgressCheck()
    /// The conditions that the origin was sent.
    private(set) var conditions = FetchRequestWriter.Conditions.storedAndClients
    /// Whether the leader's client waits for 100 from the origin. If content was read ahead, the client has got a 100.
    let awaitsContinue: Bool
    private var continuation: Continuation

    var request: ClientRequest { plan.request }
    /// The method that the origin is sent.
    var method: Method { plan.method }
    /// The key under which the response belongs.
    var storeKey: CacheKey { placement.otherKey ?? request.key }
    /// Whether an invalidation concerns the response: the fetch may neither store it nor share it with later requests.
    /// See `SharedState.invalidate`.
    var wasInvalidated: Bool { Placement.wasInvalidated(self) }
    /// Whether an earlier fetch, which the leader had joined, brought a response for its own leader only. Then a status
    /// that concerns the request concerns them all, and the next requests must not wait for one another.
    var leaderWasReleased: Bool { leader?.wasReleased == true }
    /// Whether the response is written as events occur, so that silence does not mean that the origin is in trouble.
    var isIncremental: Bool { fetched?.response.facts.contains(.isIncremental) ?? false }
    /// Whether the operation got its slot.
    var hasBegun: Bool { state != .new }

    // Borrowed parameters are copied where they are kept: the caller would also retain one that `init` consumes.
    init(
        _ plan: consuming FetchPlan, _ arrival: borrowing Arrival, context: borrowing LoopContext,
        leader: borrowing (any FetchLeader)?, awaitsContinue: Bool
    ) {
        self.awaitsContinue = awaitsContinue
        self.arrival = copy arrival
        self.leader = copy leader
        self.context = copy context
        continuation = Continuation(withoutClients: plan.isRefresh)
        self.plan = plan
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
        if request.hasContent { leader?.fetchTakesContent() }
    }

    /// Sends the request to the origin; after a 304 that did not help, once more. The 304 has no content, so its
    /// exchange ends by itself and the connection is used again.
    func ask(_ conditions: FetchRequestWriter.Conditions = .storedAndClients) {
        (sentAt, generation) = (context.moment, context.tags.generation)
        placement.formerInvalidations = context.invalidations
        var writer = FetchRequestWriter(under: conditions, awaitsContinue: awaitsContinue, hasLeader: leader != nil)
        let (asked, pool) = (context.write(plan, from: arrival, with: &writer), context.pool(for: request))
        self.conditions = writer.conditions
        let exchange = Exchange(
            asked, pool: pool, handler: self, owner: request.isBound ? leader?.boundConnections ?? .closed : nil,
            early: request.hasContent ? leader?.takeContent() : nil)
        if pool.choosesByKey { exchange.choosePlace(by: request.sentKey.bytes) }
        exchange.start()
        self.exchange = exchange
    }

    /// The only way to an end. A later call has no effect.
    func end(_ ending: FetchEnding) {
        guard state != .over else { return }
        let isHandedOut = state.isHandedOut
        enter(.over)
        arriving = arriving.leavingLine()
        resumption = nil
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
        let exchange = exchange.take()
        let operation = operation.take()
        if let error { operation?.finish(.failure(error)) } else { operation?.finish() }
        // After the operation has left the table: a request that looks up again must not find it.
        if let error { waiter.take()?.received(.failure(error)) }
        if ending.cutsExchange { exchange?.cancel() }
    }

    /// The response that was handed out ends short, and is never stored as whole (RFC 9111 §3.3).
    private func breakBody(of fetched: FetchedResponse, _ ending: FetchEnding) {
        // Before its readers are told.
        if case .truncated(let shortfall, _) = ending { fetched.noteShortfall(shortfall) }
        fetched.response.looseBody?.fail()
        if ending.mayKeepPart { ResponseStoring(of: self)?.storeReceivedPart(of: fetched) }
    }

    /// Gives the response to all waiters.
    func deliver(_ fetched: consuming FetchedResponse) {
        operation?.deliver(fetched)
        waiter.take()?.received(.success(fetched))
    }

    /// Sets whether the fetch outlives its last client. If it may not and no client is left, the fetch ends now.
    func setContinues(withoutClients continues: Bool) {
        continuation = continuation.set(withoutClients: continues, operation, isShared: plan.isShared)
    }

    override func deadlineReached() -> Int64? {
        let (next, left) = progress.reached(for: self, isPaused: arriving.isPaused)
        progress = left
        return next
    }
}
