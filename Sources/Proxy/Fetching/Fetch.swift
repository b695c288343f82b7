import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Telemetry
import Upstream

/// The request that led a fetch, on the same loop: content, upgrades and what concerns nobody else go through it.
protocol FetchClient: AnyObject {
    /// Whether another fetch of the same key, which it joined, brought what it could not have.
    var wasReleased: Bool { get }
    /// Content that was held back is out: send more.
    func fetchTakesContent(_ fetch: Fetch)
    /// An interim response as it goes to the client.
    func fetch(_ fetch: Fetch, received interim: ByteSlice)
    /// The origin switched protocols; `head` is the 101 as it goes to the client, with what came behind it.
    func fetch(_ fetch: Fetch, upgradedTo connection: UpstreamConnection, head: ByteBuffer)
    /// The outcome of a fetch that is for this client alone; at most once, and not after it has left. Send nothing from inside the call.
    func fetch(_ fetch: Fetch, brings result: consuming Result<FetchedResponse, OperationError>)
    /// The origin confirmed what only this client has: it gets this answer and leaves; the others go on waiting.
    func fetch(_ fetch: Fetch, answers response: FetchedResponse)
}

/// One fetch at work: sends the request, decides at the response's head who may have it, fills the body, stores it.
///
/// Belongs to the loop of the client that led it and to its `FetchOperation`, which the other loops see.
///
/// ```
/// new ─begin→ asking ─head→ streaming ─end→ over (stored)
///               │ │            └─failure→ over (body failed; what came may be kept as a part)
///               │ ├─304 about what is stored→ over (validated);  304 about nothing stored→ asking, without conditions
///               │ ├─304 for the leader alone→ asking, for the others; over if there are none
///               │ ├─5xx with a usable stale response→ over (stale)
///               │ ├─a whole too large for who wanted a range, a part that does not fit→ over (released)
///               │ └─101→ over (the connection is the client's)
///               └─failure→ over (stale, or failed)
/// any ─cancel→ over                   (what came may be kept as a part)
/// ```
final class Fetch: DeadlineTarget {
    enum State { case new, asking, streaming, over }

    let request: ClientRequest
    let plan: FetchPlan
    /// Until either ends. Not weak: that would make every reference to the client slow.
    var client: (any FetchClient)?

    let worker: Worker
    var state = State.new
    private(set) var operation: FetchOperation?
    var exchange: Exchange?
    var sentAt: Moment
    var placement: Placement
    /// What its waiters got, from the response's head on.
    var fetched: FetchedResponse?
    /// The response's body, from its head on.
    var arriving = ArrivingBody()
    /// The origin's last sign of life, in nanoseconds of the loop's clock.
    var lastProgress: Int64 = 0
    var conditions = Conditions.storedAndClients
    /// Content of the request that came before the operation got its slot.
    var early: OutgoingContent?
    /// Set if it serves one client only; `nil` if others may join.
    var sole: SoleClient?
    private var progressDeadline = LazyDeadline<Void>()

    /// What the origin is asked. It follows from the key, since all who share the key get the answer: a refresh in the background is a GET,
    /// whoever caused it.
    var method: Method {
        switch plan.key.kind {
        case .get, .part: .get
        case .head: .head
        case .alone: request.method
        }
    }

    /// The one whose body arrives.
    var response: StoredResponse? { fetched?.response }

    /// Whether its operation got its slot.
    var hasBegun: Bool { state != .new }

    init(_ request: borrowing ClientRequest, plan: borrowing FetchPlan, worker: borrowing Worker, client: (any FetchClient)?) {
        self.request = copy request
        self.client = client
        self.plan = copy plan
        self.worker = copy worker
        sole = plan.isShared ? nil : SoleClient()
        sentAt = request.arrived
        placement = Placement(of: self.request, worker: self.worker)
        super.init()
    }

    // MARK: Beginning and ending

    func begin(for operation: FetchOperation) {
        guard state == .new, !operation.hasEnded else { return }
        state = .asking
        self.operation = operation
        lastProgress = worker.now
        if sole == nil {
            if worker.settings.coalescing.whenLastLeaves == .finish { operation.lastLeavePolicy = .goOn }
            if worker.settings.coalescing.isEnabled { armProgressCheck(after: patience) }
        }
        ask()
        if request.hasContent { client?.fetchTakesContent(self) }
    }

    /// The operation was cancelled: nobody wants the result any more.
    func cancel() {
        guard state != .over else { return }
        let former = state
        state = .over
        response?.looseBody?.fail()
        if former == .streaming, let response { keepWhatArrived(of: response) }
        fetched.take()?.noteEnd(at: worker.moment)
        exchange?.cancel()
        bring(.failure(.cancelled))
        letGo()
    }

    /// What was delivered is over, whole or cut off.
    func finish() { end(failing: nil) }

    /// Nothing was delivered; those who wait get the error.
    func fail(_ error: any Error) { end(failing: error) }

    /// Either of them, before the exchange is over: its connection is closed.
    func cutOff(_ error: (any Error)? = nil) {
        let exchange = exchange
        end(failing: error)
        exchange?.cancel()
    }

    private func end(failing error: (any Error)?) {
        guard state != .over else { return }
        state = .over
        // Moved out, not reached through here, which would be retained.
        fetched.take()?.noteEnd(at: worker.moment)
        if let error { bring(.failure(OperationError(error))) }
        let operation = letGo()
        if let error { operation?.finish(.failure(error)) } else { operation?.finish() }
    }

    /// - Returns: the operation, to be ended.
    @discardableResult
    private func letGo() -> FetchOperation? {
        if sole == nil {
            operation?.interims.end()
            var deadline = progressDeadline
            deadline.cancel(on: worker.deadlines)
            progressDeadline = deadline
        }
        client = nil
        exchange = nil
        return operation.take()
    }

    // MARK: Content of the client's request

    /// - Returns: false when enough is held: wait for `fetchTakesContent`.
    func send(_ content: Span<UInt8>) -> Bool {
        if let exchange { return exchange.send(content) }
        // The answer has been given: the rest is read and dropped.
        guard state != .over else { return true }
        // Still waiting for a slot at the origin: one piece is held, the client waits with the rest.
        earlyContent.append(content)
        return false
    }

    func endContent(trailers: ByteSlice?) {
        if let exchange { exchange.endContent(trailers: trailers) } else if state == .new { earlyContent.end(trailers: trailers) }
    }

    private var earlyContent: OutgoingContent {
        let content = early ?? OutgoingContent(UpstreamRequest.Content(request.head.framing))
        early = content
        return content
    }

    // MARK: Time

    /// How long the origin may stand still, in nanoseconds: half a tick less, since the wheel is up to a tick late.
    private var patience: Int64 { worker.settings.coalescing.overtakeAfter.nanoseconds - DeadlineWheel.Settings.tick / 2 }

    /// After that time, checks whether the origin stands still.
    private func armProgressCheck(after nanoseconds: Int64) {
        // In a local variable nothing watches its exclusive use at run time.
        var deadline = progressDeadline
        deadline.set((), at: worker.now + nanoseconds, for: self, on: worker.deadlines)
        progressDeadline = deadline
    }

    override func deadlineReached() -> Int64? {
        var deadline = progressDeadline
        let reached = deadline.reached(at: worker.now)
        progressDeadline = deadline
        switch reached {
        case .nothing: return nil
        case .later(let time): return time
        case .due: break
        }
        guard state == .asking || state == .streaming, let operation else { return nil }
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

    // MARK: Failing

    func originFailed(_ error: UpstreamError) {
        if let stale = usableStale(on: error.originFailure) {
            return finish(with: stale, source: .staleOnError(error.originFailure), status: nil)
        }
        var error = error
        error.duration = UInt64(max(0, worker.now - sentAt.monotonic))
        fail(error)
    }

    func usableStale(on failure: OriginFailure) -> StoredResponse? {
        guard let stored = plan.fallback,
              stored.facts.mayServeStale(on: failure, for: request.directives, at: worker.moment, policy: request.route.policy)
        else { return nil }
        return stored
    }

    /// Ends with a response that is already complete.
    /// - Parameter isStored: whether it was put into the store as it is.
    func finish(with stored: StoredResponse, source: FetchedResponse.Source, status: Status?, isStored: Bool = false) {
        let storedHead = stored.head
        let sharing = sharing(of: stored.facts, request.route.policy)
        // RFC 9111 §5.2.2.4: after `no-cache`, each request needs a validation of its own; and the 304 may have made it private.
        let forWaiters: Sharing = if case .nobody = sharing, source == .validated { sharing } else { .waitersOnly }
        operation?.close()
        var circumstances = circumstances(of: stored)
        circumstances.otherKey = staysUnderItsKey(stored) ? nil : request.sentKey
        circumstances.search = Placement.stated(storedHead.view)
        let fetched = FetchedResponse(
            stored, source: source, sharing: forWaiters, originStatus: status, length: stored.body.length, willBeStored: isStored, circumstances)
        fetched.noteEnd(at: worker.moment)
        deliver(fetched)
        // A 304 has no content: its exchange ends by itself, and the connection is used again.
        if source == .validated { finish() } else { cutOff() }
    }
}
