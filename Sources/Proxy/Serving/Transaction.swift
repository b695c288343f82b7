import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Telemetry
import Upstream

/// One request that is not answered on the hot path, from look-up to the last byte of its response.
///
/// Owned by its client connection, confined to its loop. Whether it led or joined matters only to what it waits for: who leads has as long
/// as the origin is given, and its content goes through its own fetch.
///
/// ```
/// new ─look→ responding                       (stored; 503 or stale at a bound; 504 where only what is stored is wanted)
///   │    └→ waiting ─response→ responding     (led, joined, alone)
///   │          ├─answer for it alone→ responding (304 for a tag that only it has)
///   │          ├─101→ responding (the connection becomes a tunnel)
///   │          ├─released→ new, shared at most `maxLooks` times, then alone
///   │          ├─waited too long→ new, alone, or responding (stale, 503)
///   │          └─failure→ responding (502, 503, 504), or new, alone, where errors are not shared
///   └─ responding ─sent→ over;  any ─leave→ over
/// ```
final class Transaction: FetchWaiter, TurnTaker {
    enum State {
        case new
        case waiting(FetchSeat)
        /// With a seat while the body still comes from a fetch.
        case responding(FetchSeat?)
        case over
    }

    /// Released twice, a request goes alone: the third fetch of a key that nobody may share would teach nothing.
    static let maxLooks: UInt8 = 2

    /// Under another key from look to look, when more is known about its path's queries.
    private(set) var request: ClientRequest
    var provenance = Provenance(.synthetic)
    /// The address of the server that answered, as text.
    var server = ByteSlice.empty
    /// They hold each other until the client lets go. An unowned reference would be counted as well, at each use.
    let client: any TransactionClient
    let worker: Worker
    var state = State.new
    // The small ones stand together: of those who wait by the thousand, each byte is in no cache.
    var status: UInt16 = 0
    private(set) var looks: UInt8 = 0
    private(set) var mustGoAlone = false
    var contentIsHeldBack = false
    /// What was stored, fresh or not, when the origin was asked: it may stand in at a bound.
    private var fallback: StoredResponse?
    /// The fetch that this request led.
    private var ledFetch: Fetch?
    /// The result of what it waits for, until its turn comes.
    var result: Result<FetchedResponse, OperationError>?
    var deadline = LazyDeadline<Void>()

    init(_ request: ClientRequest, client: any TransactionClient, worker: Worker) {
        self.request = request
        self.client = client
        self.worker = worker
    }

    /// Nothing is answered before this; the answer may be complete when it returns.
    func start() { look() }

    /// The client has left, or the connection ends.
    func leave() {
        var deadline = deadline
        deadline.cancel(on: worker.deadlines)
        self.deadline = deadline
        // First: leaving may begin somebody else's fetch on this stack.
        let former = state
        state = .over
        switch former {
        case .waiting(let seat), .responding(.some(let seat)): seat.leave()
        case .new, .responding(nil), .over: break
        }
        stopLeading()
    }

    /// The last byte of the response is with the kernel, or will never be.
    func responseSent() { leave() }

    // MARK: Looking up

    private func look() {
        looks += 1
        let resource = worker.resource(for: request)
        if resource == nil {
            if joinLatest() { return }
        } else if worker.crowd?.latest === request.kept {
            // Stored since: the next one is for the hot path again.
            worker.crowd = nil
        }
        let isCoalescing = worker.settings.coalescing.isEnabled && !mustGoAlone
        switch Lookup(
            request, resource: resource, groups: worker.shared.groups, at: worker.moment, isCoalescing: isCoalescing,
            usesParts: !mustGoAlone, alone: worker.shared.nextOperation()) {
        case .serve(let stored, let reuse, let refreshes):
            if refreshes { worker.refresh(stored, resource, for: request) }
            serve(stored, reuse)
        case .notStored:
            // RFC 9111 §5.2.1.7.
            fail(.gatewayTimeout, "Nothing fresh is stored, and the request wants nothing else.", detail: "only-if-cached")
        case .fetch(let plan):
            fetch(plan, seen: resource)
        }
    }

    /// Looks up again when something was learnt between the look-up and the step under the table's lock: a resource is a snapshot, so
    /// another identity means that somebody stored, marked or forgot since. This makes look-up, join and lead one step.
    private enum Changed: Sendable { case lookAgain }

    private func fetch(_ plan: FetchPlan, seen: CachedResource?) {
        fallback = plan.stored
        // To join costs a cursor; only a new fetch needs memory.
        if worker.shared.isOverloaded, worker.fetches(of: request).operation(for: plan.key, as: FetchOperation.self) == nil {
            worker.notices.overloaded(worker.shared)
            return boundExceeded("memory-full")
        }
        provenance.forwarded = plan.reason
        let fetches = worker.fetches(of: request)
        guard plan.isShared else {
            let waiter: Waiter<FetchedResponse>? = nil
            return enqueued(fetches.enqueueAlone(waiter: waiter, make: { worker.makeFetch(request, plan, client: self) }), .alone)
        }
        let bound = LoopBound<FetchWaiter>(self, on: worker.loop)
        let waiter = waiter(bound)
        if plan.asked != nil, joinWhole(plan, waiter, bound) { return }
        let store = worker.shared.store
        let result = fetches.enqueue(
            plan.key, waiter: waiter, priority: .normal,
            unless: { () -> Changed? in store.resource(request.key) != seen || worker.hasLearnt(about: request) ? .lookAgain : nil },
            make: { worker.makeFetch(request, plan, client: self) })
        guard case .joined(let operation, let token, let late) = result else { return enqueued(result, .led) }
        joined(operation, token, late: late, bound)
        if seen == nil { mayJoinAgain(operation) }
    }

    private func enqueued<Found>(_ result: Enqueued<FetchOperation, Found>, _ role: Role) {
        switch result {
        case .found:
            // Somebody else's response came in between: that is progress, so this ends.
            looks -= 1
            request = worker.keyed(request)
            look()
        case .started(let operation, let token):
            provenance.role = role
            worker.metrics.add(.coalescing(.led))
            ledFetch = operation.work.value
            wait(at: role == .alone ? .alone(operation) : .own(operation, token, listener: 0))
        case .joined:
            break
        case .refused(let reason, let operation):
            worker.metrics.add(.coalescing(.refused))
            boundExceeded(reason.name, by: operation)
        }
    }

    func waiter(_ bound: LoopBound<FetchWaiter>) -> Waiter<FetchedResponse> {
        Waiter(on: worker.loop.handle, accepts: { [request] in $0.mayServe(request) }) { bound.value.received($0) }
    }

    func wait(at seat: FetchSeat) {
        state = .waiting(seat)
        let operation = seat.operation
        provenance.operation = operation.number
        // A crowd keeps the time of all its members.
        if case .among = seat { return }
        // Who leads waits as long as the origin is given, but not for ever for its place.
        if isLeading, operation.phase == .executing { return }
        if provenance.role == .alone { operation.tellClientIfCancelled() }
        let patience = worker.settings.coalescing.waitTimeout.nanoseconds
        // In a local variable nothing watches its exclusive use at run time.
        var deadline = deadline
        deadline.set((), at: worker.now + patience, for: self, on: worker.deadlines)
        self.deadline = deadline
    }

    // MARK: Waiting

    override func received(_ result: Result<FetchedResponse, OperationError>) {
        if worker.turns.takeTurn() { return take(result) }
        self.result = result
        worker.turns.put(self)
    }

    func turnCame() {
        switch state {
        case .waiting(.among(let crowd, _)): if let result = crowd.result(for: request) { take(result) }
        case .waiting(.own), .waiting(.alone): if let result = result.take() { take(result) }
        case .new, .responding, .over: break
        }
    }

    override func received(interim: ByteSlice) {
        if case .waiting = state, request.head.version == .http11 { client.send(interim: interim) }
    }

    private func take(_ result: Result<FetchedResponse, OperationError>) {
        guard case .waiting(let seat) = state else { return }
        deadline.clear()
        if case .success(let fetched) = result {
            state = .responding(seat)
            return respond(fetched)
        }
        // A seat of its own went with the result; that in a crowd is kept as long as others have theirs.
        if case .among = seat { seat.leave() }
        switch result {
        case .success: break
        case .failure(.released):
            worker.metrics.add(.coalescing(.released))
            lookAgain()
        case .failure(.failed(let error)):
            let error = error as? UpstreamError ?? UpstreamError(.closed, detail: "\(error)")
            if provenance.role == .joined, !request.route.policy.sharesErrors { return lookAgain(alone: true) }
            upstreamFailed(error)
        case .failure(.cancelled):
            // The fetch was cancelled over our head, as when the program ends.
            fail(.serviceUnavailable, "The request to the origin was cancelled.", detail: "cancelled")
        case .failure(.abandoned), .failure(.dependency):
            fail(.badGateway, "The request to the origin was given up.", detail: "abandoned")
        }
    }

    private func lookAgain(alone: Bool = false) {
        mustGoAlone = alone || looks >= Self.maxLooks
        state = .new
        request = worker.keyed(request)
        stopLeading()
        look()
    }

    override func deadlineReached(_ kind: UInt8) -> Int64? {
        var deadline = deadline
        let reached = deadline.reached(at: worker.now)
        self.deadline = deadline
        switch reached {
        case .nothing: return nil
        case .later(let time): return time
        case .due:
            waitedTooLong()
            return nil
        }
    }

    func waitedTooLong() {
        guard case .waiting(let seat) = state else { return }
        let operation = seat.operation
        // Its fetch has got its place since.
        if isLeading, operation.phase == .executing { return }
        if seat.leave() {
            state = .new
            boundExceeded("wait-timeout", by: isLeading ? nil : operation)
        }
    }

    func stopLeading() {
        ledFetch?.client = nil
        ledFetch = nil
    }

    /// The fetch that is for this request alone, through which its content goes.
    var ownFetch: Fetch? {
        guard let ledFetch, !ledFetch.plan.isShared else { return nil }
        return ledFetch
    }

    private var isLeading: Bool {
        switch provenance.role {
        case .led, .alone: true
        case .none, .joined, .joinedLate: false
        }
    }

    /// A bound was hit: what the operator wants then.
    /// - Parameter operation: whose waiter the request was, or would have been: a fetch of its own is a way round that. There is none
    ///   round full memory or a full queue at the origin.
    private func boundExceeded(_ what: StaticString, by operation: FetchOperation? = nil) {
        switch worker.settings.coalescing.whenExceeded {
        case .pass:
            if operation != nil, !mustGoAlone { return lookAgain(alone: true) }
            if serveStale(because: what) { return }
        case .stale:
            if serveStale(because: what) { return }
        case .unavailable:
            break
        }
        fail(.serviceUnavailable, "The proxy is at one of its limits; try again in a moment.", detail: what)
    }

    /// - Returns: false when nothing is stored that may stand in (RFC 9111 §4.2.4).
    private func serveStale(because detail: StaticString) -> Bool {
        guard let fallback, fallback.facts.mayServeStale(
            on: .overloaded, for: request.directives, at: worker.moment, policy: request.route.policy)
        else { return false }
        serve(fallback, .staleAccepted(age: fallback.facts.age(at: worker.moment)), detail: detail)
        return true
    }

    private func upstreamFailed(_ error: UpstreamError) {
        provenance.originStatus = 0
        fail(Status(error.status), error.explanation, detail: error.failure.name, upstream: error)
    }
}
