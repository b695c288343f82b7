import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Telemetry
import Upstream

/// What a transaction needs of the client's connection, whatever its transport and protocol.
protocol TransactionClient: AnyObject {
    /// Sends a response; the transaction is told by `responseSent`.
    func send(_ head: ByteBuffer, _ source: Delivery.Source, _ framing: Delivery.Framing, passesTrailers: Bool)
    /// Sends a 1xx head as it is.
    func send(interim: ByteSlice)
    /// Content may be read again.
    func resumeContent()
    /// The connection becomes a tunnel to `upstream`; `head` is the 101.
    func tunnel(to upstream: UpstreamConnection, head: ByteBuffer)
    /// Whether the connection outlives the response, and the client's version: what the head must say of it.
    var persists: Bool { get }
}

/// One request that is not answered on the hot path, from look-up to the last byte of its response.
///
/// Owned by its client connection, confined to its loop. It never learns whether it led, joined or hit but to tell the log.
///
/// ```
/// new ─look→ responding                       (stored)
///   │    └→ waiting ─response→ responding     (led, joined, alone)
///   │          ├─answer for it alone→ responding (304 for a tag that only it has)
///   │          ├─released, overtaken→ looking again, at most `maxLooks` times, then alone
///   │          └─failure, timeout→ responding (stale, 502, 503, 504)
///   └─ responding ─sent→ over;  any ─leave→ over
/// ```
final class Transaction: DeadlineTarget {
    private enum State {
        case new
        case waiting(FetchOperation, WaiterToken)
        case responding(FetchOperation?, WaiterToken)
        case over
    }

    /// Released twice, a request goes alone: the third fetch of a key that nobody may share would teach nothing.
    static let maxLooks = 2

    /// Under another key from look to look, when more is known about its path's queries.
    private(set) var request: ClientRequest
    private(set) var provenance = Provenance(.synthetic)
    private(set) var status: UInt16 = 0
    private unowned let client: any TransactionClient
    private let worker: Worker
    private var state = State.new
    private var looks = 0
    private var mustGoAlone = false
    private var stale: StoredResponse?
    /// The fetch that this request led.
    private var ledFetch: Fetch?
    private var contentIsHeldBack = false
    private var interimObserver: UInt64 = 0
    private var deadline = LazyDeadline<Void>()

    init(_ request: ClientRequest, client: any TransactionClient, worker: Worker) {
        self.request = request
        self.client = client
        self.worker = worker
    }

    /// Nothing is answered before this; the answer may be complete when it returns.
    func start() { look() }

    /// The client has left, or the connection ends.
    func leave() {
        deadline.cancel(on: worker.loop.deadlines)
        switch state {
        case .waiting(let operation, let token), .responding(let operation?, let token):
            if interimObserver != 0 { operation.interims.leave(interimObserver) }
            operation.leave(token)
        case .new, .responding(nil, _), .over: break
        }
        state = .over
        stopLeading()
    }

    /// The last byte of the response is with the kernel, or will never be.
    func responseSent() { leave() }

    // MARK: Looking up

    private func look() {
        looks += 1
        let resource = worker.shared.store.resource(request.key)
        let isCoalescing = worker.settings.coalescing.isEnabled && !mustGoAlone
        switch Lookup(
            request, resource: resource, groups: worker.shared.groups, at: worker.moment, isCoalescing: isCoalescing,
            usesParts: !mustGoAlone, alone: worker.shared.nextOperation()) {
        case .serve(let stored, let reuse, let refreshes):
            if refreshes { refresh(stored, resource) }
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
        stale = plan.stored
        // To join costs a cursor; only a new fetch needs memory.
        if worker.shared.isOverloaded, worker.fetches(of: request).operation(for: plan.key, as: FetchOperation.self) == nil {
            worker.noteOverload()
            return boundExceeded("memory-full")
        }
        provenance.forwarded = plan.reason
        let waiter = waiter()
        if plan.asked != nil, joinWhole(plan, waiter) { return }
        let fetches = worker.fetches(of: request)
        guard plan.isShared else {
            return enqueued(fetches.enqueueAlone(waiter: waiter, make: { worker.makeFetch(request, plan, client: self) }), .alone)
        }
        let store = worker.shared.store
        let result = fetches.enqueue(
            plan.key, waiter: waiter, priority: .normal,
            unless: { () -> Changed? in store.resource(request.key) != seen || worker.hasLearnt(about: request) ? .lookAgain : nil },
            make: { worker.makeFetch(request, plan, client: self) })
        enqueued(result, .led)
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
            wait(for: operation, token)
        case .joined(let operation, let token, let late):
            provenance.role = late ? .joinedLate : .joined
            worker.metrics.add(.coalescing(late ? .joinedLate : .joined))
            wait(for: operation, token)
            let bound = LoopBound(self, on: worker.loop)
            interimObserver = operation.interims.observe(on: worker.loop.handle) { bound.value.received(interim: $0) }
        case .refused(let reason, let operation):
            worker.metrics.add(.coalescing(.refused))
            boundExceeded(reason.name, by: operation)
        }
    }

    /// Nobody asks for a part of what is just arriving as a whole.
    private func joinWhole(_ plan: FetchPlan, _ waiter: Waiter<FetchedResponse>) -> Bool {
        let kind: FetchKey.Kind = request.hasAuthorization ? .authorizedGet : .get
        let key = FetchKey(kind: kind, primary: plan.key.primary, variant: plan.key.variant)
        guard plan.isShared, let operation = worker.fetches(of: request).operation(for: key, as: FetchOperation.self),
              case .joined(let token, let late) = operation.join(waiter) else { return false }
        enqueued(Enqueued<FetchOperation, Changed>.joined(operation, token, late: late), .none)
        return true
    }

    private func waiter() -> Waiter<FetchedResponse> {
        let bound = LoopBound(self, on: worker.loop)
        return Waiter(on: worker.loop.handle, accepts: { [request] in $0.mayServe(request) }) { result in
            let transaction = bound.value
            let turns = transaction.worker.turns
            if turns.isMine() { transaction.received(result) } else { turns.put { transaction.received(result) } }
        }
    }

    private func wait(for operation: FetchOperation, _ token: WaiterToken) {
        state = .waiting(operation, token)
        provenance.operation = operation.number
        let patience = worker.settings.coalescing.waitTimeout.nanoseconds
        deadline.set((), at: worker.loop.now + patience, for: self, on: worker.loop.deadlines)
    }

    /// Fetches anew what is served stale, for nobody in particular (RFC 5861 §3): it neither delays nor dies with this request.
    private func refresh(_ stored: StoredResponse, _ resource: CachedResource?) {
        let fields = request.fields
        let variant = resource?.knownVary.first.map { VariantKey(fields.view, under: $0) }
        let plan = FetchPlan(
            key: FetchKey(kind: request.hasAuthorization ? .authorizedGet : .get, primary: request.key, variant: variant),
            reason: .stale, stored: stored, resource: resource, isTransparent: false, isRefresh: true)
        let store = worker.shared.store
        let refreshed = request
        _ = worker.fetches(of: request).enqueue(
            plan.key, waiter: nil as Waiter<FetchedResponse>?, priority: .background,
            unless: { () -> Changed? in
                store.resource(request.key) == resource ? nil : .lookAgain
            },
            make: { worker.makeFetch(refreshed, plan, client: nil) })
    }

    // MARK: Waiting

    private func received(interim: ByteSlice) {
        if case .waiting = state, request.head.version == .http11 { client.send(interim: interim) }
    }

    private func received(_ result: Result<FetchedResponse, OperationError>) {
        guard case .waiting(let operation, let token) = state else { return }
        deadline.clear()
        switch result {
        case .success(let fetched):
            state = .responding(operation, token)
            respond(fetched)
        case .failure(.released):
            worker.metrics.add(.coalescing(.released))
            lookAgain()
        case .failure(.failed(let error)):
            let error = error as? UpstreamError ?? UpstreamError(.closed, detail: "\(error)")
            if provenance.role == .joined, !worker.settings.coalescing.sharesErrors { return lookAgain(alone: true) }
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
        switch deadline.reached(at: worker.loop.now) {
        case .nothing: return nil
        case .later(let time): return time
        case .due:
            guard case .waiting(let operation, let token) = state else { return nil }
            // Who leads waits as long as the origin is given; but not for ever for its place.
            if isLeading, operation.phase == .executing { return nil }
            if operation.leave(token) {
                operation.interims.leave(interimObserver)
                state = .new
                boundExceeded("wait-timeout", by: isLeading ? nil : operation)
            }
            return nil
        }
    }

    private func stopLeading() {
        ledFetch?.client = nil
        ledFetch = nil
    }

    /// The fetch that is for this request alone, through which its content goes.
    private var ownFetch: Fetch? {
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
        guard let stale, stale.facts.mayServeStale(
            on: .overloaded, for: request.directives, at: worker.moment, policy: request.route.policy)
        else { return false }
        serve(stale, .staleAccepted(age: stale.facts.age(at: worker.moment)), detail: detail)
        return true
    }

    private func upstreamFailed(_ error: UpstreamError) {
        provenance.originStatus = 0
        fail(Status(error.status), error.explanation, detail: error.failure.name, upstream: error)
    }

    // MARK: Responding

    private func serve(_ stored: StoredResponse, _ reuse: Reuse, detail: StaticString? = nil) {
        provenance.forwarded = nil
        provenance.detail = detail
        provenance.verdict = if case .fresh = reuse { .hit } else { .stale }
        provenance.timeToLive = stored.facts.timeToLive(at: worker.moment)
        provenance.tellsAge = true
        state = .responding(nil, .none)
        stored.noteUse()
        respond(stored, length: stored.bodyLength)
    }

    private func respond(_ fetched: FetchedResponse) {
        let facts = fetched.response.facts
        provenance.server = fetched.server
        provenance.originStatus = fetched.originStatus
        provenance.isStored = fetched.willBeStored
        // Who joined late gets what was made for somebody before.
        provenance.tellsAge = fetched.hasAge || provenance.role == .joinedLate
        switch fetched.source {
        case .origin:
            provenance.verdict = isPass(fetched) ? .pass : .miss
            if facts.lifetimeSource != .none { provenance.timeToLive = facts.timeToLive(at: worker.moment) }
            if case .nobody(let reason) = fetched.sharing { provenance.detail = reason.name }
        case .validated:
            provenance.tellsAge = true
            provenance.verdict = .revalidated
            provenance.timeToLive = facts.timeToLive(at: worker.moment)
        case .staleOnError:
            provenance.tellsAge = true
            provenance.verdict = .stale
            provenance.timeToLive = facts.timeToLive(at: worker.moment)
            provenance.detail = "stale-if-error"
        }
        respond(fetched.response(for: request), length: fetched.length ?? fetched.response.bodyLength)
    }

    private func isPass(_ fetched: FetchedResponse) -> Bool {
        switch provenance.forwarded {
        case .method, .bypass, .request: true
        case .uriMiss, .varyMiss, .miss, .stale, .partial, nil: false
        }
    }

    private func respond(_ response: StoredResponse, length: Int?) {
        let answer = Answer(
            request, response, length: length, isOwn: ownFetch?.plan.isTransparent == true,
            maxRanges: request.route.policy.maxRanges)
        let head = ByteBuffer(capacity: response.fieldLines.count + 256)
        status = answer.status.code
        answer.writeHead(
            to: head, provenance: provenance, at: worker.moment, persists: client.persists, version: request.head.version,
            forwarding: worker.runtime.responseForwarding)
        client.send(head, answer.source(), answer.framing(for: request.head.version), passesTrailers: request.acceptsTrailers)
    }

    /// Answers by ourselves, in plain text that says what was wrong.
    func fail(_ status: Status, _ explanation: StaticString, detail: StaticString, upstream: UpstreamError? = nil) {
        deadline.clear()
        state = .responding(nil, .none)
        self.status = status.code
        provenance.verdict = .synthetic
        provenance.detail = detail
        let head = ByteBuffer(capacity: 512)
        let content = worker.errors.write(
            status, explanation, provenance: provenance, upstream: upstream, persists: client.persists,
            version: request.head.version, date: worker.loop.wallClockSeconds, isHead: request.method == .head, to: head)
        client.send(head, content, .sized, passesTrailers: false)
    }
}

// MARK: - Content of the request

extension Transaction: FetchClient {
    /// A piece of content from the client.
    /// - Returns: false when no more can be taken at the moment.
    func receive(content: Span<UInt8>) -> Bool {
        guard let ownFetch else { return true }
        contentIsHeldBack = !ownFetch.send(content)
        return !contentIsHeldBack
    }

    func endContent(trailers: ByteSlice?) { ownFetch?.endContent(trailers: trailers) }

    /// Whether anybody still wants the request's content.
    var wantsContent: Bool { ownFetch != nil }

    func fetchTakesContent(_ fetch: Fetch) {
        guard contentIsHeldBack else { return }
        contentIsHeldBack = false
        client.resumeContent()
    }

    func fetch(_ fetch: Fetch, received interim: ByteSlice) { received(interim: interim) }

    func fetch(_ fetch: Fetch, answers response: FetchedResponse) {
        guard case .waiting(let operation, let token) = state, operation.leave(token) else { return }
        // Before anybody hears of it: who comes then finds a fetch that goes on for others, or none.
        operation.cancelIfUnattended()
        deadline.clear()
        stopLeading()
        state = .responding(nil, .none)
        respond(response)
    }

    func fetch(_ fetch: Fetch, upgradedTo connection: UpstreamConnection, head: ByteBuffer) {
        guard case .waiting(let operation, let token) = state else { return connection.closeTunnel() }
        operation.leave(token)
        state = .responding(nil, .none)
        status = 101
        provenance.verdict = .pass
        provenance.server = connection.addressText
        client.tunnel(to: connection, head: head)
    }
}
