import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Telemetry
import Upstream

/// Who made a fetch for itself, on the same loop: the one that content, upgrades and interim responses go through.
protocol FetchClient: AnyObject {
    /// Content that was held back went out: send more.
    func fetchTakesContent(_ fetch: Fetch)
    /// The origin switched protocols; `head` is the 101 as it goes to the client.
    func fetch(_ fetch: Fetch, upgradedTo connection: UpstreamConnection, head: ByteBuffer)
}

/// One fetch at work: sends the request, decides at the response's head who may have it, fills the body, stores it.
///
/// Belongs to the loop of the client that led it and to its `FetchOperation`, which the other loops see.
///
/// ```
/// new ─begin→ asking ─head→ streaming ─end→ over (stored)
///               │ │            └─failure→ over (body failed)
///               │ └─304→ over (validated);  5xx with a usable stale response→ over (stale)
///               └─failure→ over (stale, or failed)
/// any ─cancel→ over
/// ```
final class Fetch {
    enum State { case new, asking, streaming, over }

    let request: ClientRequest
    let plan: FetchPlan
    weak var client: (any FetchClient)?

    private let worker: Worker
    private var state = State.new
    private var operation: FetchOperation?
    private var exchange: Exchange?
    private var sentAt: Moment
    private var generation: Generation
    private var response: StoredResponse?
    private var willBeStored = false
    /// Content that came before the operation got its place.
    private var lastProgress: Int64 = 0
    private var isPaused = false

    init(_ request: ClientRequest, plan: FetchPlan, worker: Worker) {
        self.request = request
        self.plan = plan
        self.worker = worker
        sentAt = request.arrived
        generation = worker.shared.store.generation(hash: request.key.hash)
    }

    // MARK: Beginning and ending

    func begin(for operation: FetchOperation) {
        guard state == .new, !operation.hasEnded else { return }
        state = .asking
        self.operation = operation
        sentAt = worker.moment
        lastProgress = worker.loop.now
        let exchange = Exchange(upstreamRequest(), pool: worker.pool(of: request.route.origin), handler: self)
        self.exchange = exchange
        if plan.isShared, worker.settings.coalescing.isEnabled {
            lookForProgress(after: worker.settings.coalescing.overtakeAfter.nanoseconds)
        }
        exchange.start()
        for piece in early { _ = exchange.send(piece.span) }
        if let trailers = earlyEnd { exchange.endContent(trailers: trailers) }
        early = []
        client?.fetchTakesContent(self)
    }

    /// The operation was cancelled: nobody wants the result any more.
    func cancel() {
        guard state != .over else { return }
        state = .over
        exchange?.cancel()
        response?.body.fail()
        release()
    }

    private func finish(_ result: Result<FetchedResponse, any Error>?) {
        guard state != .over else { return }
        state = .over
        let operation = operation
        operation?.interims.end()
        release()
        if let result { operation?.finish(result) } else { operation?.finish() }
    }

    private func release() {
        progressTimer?.cancel()
        exchange = nil
        operation = nil
    }

    private func askUnconditionally() {
        isConditional = false
        exchange?.cancel()
        let exchange = Exchange(upstreamRequest(), pool: worker.pool(of: request.route.origin), handler: self)
        self.exchange = exchange
        exchange.start()
    }

    /// Whether the validators of what is stored are offered.
    private var isConditional = true

    private func upstreamRequest() -> UpstreamRequest {
        var dropping: FieldSet = []
        var conditions = ValidationRequest()
        if !plan.isTransparent {
            // What one client wants of the answer is decided here, so that the answer fits all who wait.
            dropping = FieldSet(.ifNoneMatch, .ifModifiedSince, .range, .ifRange, .expect)
            for stored in isConditional ? plan.resource?.responses ?? [] : [] {
                let head = stored.head
                conditions.add(head.view, facts: stored.facts)
            }
        }
        if request.maxForwards != nil { dropping.insert(.maxForwards) }
        let isUpgrading = plan.isTransparent && request.head.asksForUpgrade
        let content = UpstreamRequest.Content(request.head.framing)
        let fields = request.fields
        let client = request.client
        let head = ByteBuffer(capacity: fields.bytes.count + 256)
        worker.runtime.requestForwarding.write(
            request.head, fields.view,
            RequestForwarding.Exchange(
                framing: request.head.framing, dropping: dropping, isUpgrading: isUpgrading, acceptsTrailers: true),
            clientAddress: client.span, scheme: "http", to: head
        ) { [worker, request] buffer in
            conditions.write(to: buffer)
            worker.runtime.loops.writeLoop(to: buffer)
            if let hops = request.maxForwards { buffer.appendField("Max-Forwards", UInt64(hops - 1)) }
        }
        return UpstreamRequest(
            method: request.method, head: head.copied(), content: content, asksForUpgrade: isUpgrading,
            expectsContinue: request.head.expectation == .continue)
    }

    // MARK: Content of the client's request

    private var early: [ByteSlice] = []
    private var earlyEnd: ByteSlice??

    /// - Returns: false when enough is held: wait for `fetchTakesContent`.
    func send(_ content: Span<UInt8>) -> Bool {
        if let exchange { return exchange.send(content) }
        // Waiting for a place among the origin's fetches: one piece is held, the client waits with the rest.
        early.append(ByteSlice(copying: content))
        return false
    }

    func endContent(trailers: ByteSlice?) {
        if let exchange { exchange.endContent(trailers: trailers) } else { earlyEnd = .some(trailers) }
    }

    // MARK: Time

    private var progressTimer: Timer?

    /// Looks now and then whether the origin stands still.
    private func lookForProgress(after delay: Int64) {
        progressTimer = worker.loop.schedule(after: delay) { [weak self] in self?.lookForProgress() }
    }

    private func lookForProgress() {
        guard state == .asking || state == .streaming, let operation else { return }
        let patience = worker.settings.coalescing.overtakeAfter.nanoseconds
        // While the readers hold it back, the origin cannot show progress.
        let stillFor = isPaused ? 0 : worker.loop.now - lastProgress
        guard stillFor >= patience else { return lookForProgress(after: patience - stillFor) }
        // Those who wait stay; whoever comes now starts anew.
        if operation.close() { worker.metrics.add(.coalescing(.overtaken)) }
    }

    // MARK: Failing

    private func originFailed(_ error: UpstreamError) {
        if let stale = usableStale(on: error.originFailure) {
            return serve(stale, source: .staleOnError, status: 0)
        }
        finish(.failure(error))
    }

    private func usableStale(on failure: OriginFailure) -> StoredResponse? {
        guard let stored = plan.stored,
              stored.facts.mayServeStale(on: failure, for: request.directives, at: worker.moment, policy: request.route.policy)
        else { return nil }
        return stored
    }

    /// Ends with a response that is complete already.
    private func serve(_ stored: StoredResponse, source: FetchedResponse.Source, status: UInt16) {
        let exchange = exchange
        let sharing = stored.facts.sharing(
            method: request.method, request: request.directives, hasAuthorization: request.hasAuthorization,
            policy: request.route.policy)
        // RFC 9111 §5.2.2.4: after `no-cache`, each request needs a validation of its own; and the 304 may have made it private.
        let forWaiters: Sharing = if case .nobody = sharing, source == .validated { sharing } else { .waitersOnly(varies: true) }
        operation?.close()
        operation?.deliver(FetchedResponse(
            leader: request, response: stored, source: source, sharing: forWaiters, originStatus: status, length: stored.body.length,
            willBeStored: source == .validated, server: server))
        finish(nil)
        exchange?.cancel()
    }

    private var server: String { exchange?.address?.description ?? "" }
}

// MARK: - The response

extension Fetch: ExchangeHandler {
    func exchange(_ exchange: Exchange, interim head: borrowing ReceivedHead) {
        lastProgress = worker.loop.now
        // A 100 answers our own `Expect`, which only a fetch of the client's own forwards.
        if head.head.status == .continue, !request.hasContent { return }
        let buffer = ByteBuffer(capacity: 256)
        buffer.appendStatusLine(head.head.status)
        buffer.appendFields(head.fields, connection: head.head.connection)
        buffer.appendLineEnd()
        operation?.interims.append(buffer.copied())
    }

    func exchange(_ exchange: Exchange, received head: borrowing ReceivedHead) {
        guard state == .asking, let operation else { return }
        let now = worker.moment
        lastProgress = worker.loop.now
        let status = head.head.status
        if status == .notModified, !plan.isTransparent {
            if let validated = freshened(by: head, at: now) { return serve(validated, source: .validated, status: status.code) }
            // It is about nothing that is stored here (RFC 9111 §4.3.4): ask for the whole.
            if isConditional { return askUnconditionally() }
        }
        if status.isServerError, let stale = usableStale(on: .status(status)) {
            return serve(stale, source: .staleOnError, status: status.code)
        }
        state = .streaming
        if Invalidation.applies(method: request.method, status: status) { worker.invalidate(request, answeredBy: head.fields) }
        let policy = request.route.policy
        let facts = ResponseFacts(status: status, fields: head.fields, requested: sentAt, received: now, policy: policy)
        if request.method == .head { freshenFromHead(head, facts) }
        let sharing = facts.sharing(
            method: request.method, request: request.directives, hasAuthorization: request.hasAuthorization, policy: policy)
        let length = request.method == .head ? head.head.contentLength.map { Int(clamping: $0) } : head.head.framing.announcedLength
        willBeStored = isStorable(facts) && (length ?? 0) <= worker.storage.maxObjectSize
        let response = makeResponse(head, facts, length: length, keepsWhole: willBeStored || sharing.isForSeveral)
        self.response = response
        operation.interims.end()
        announce(response, sharing)
        var fetched = FetchedResponse(
            leader: request, response: response, source: .origin, sharing: sharing, originStatus: status.code, length: length,
            willBeStored: willBeStored, server: server)
        if facts.contains(.excludesFields) { fetched.leaderResponse = response.withHead(keptHead(head, facts, isForLeader: true)) }
        operation.deliver(fetched)
        operation.lastLeavePolicy = willBeStored && worker.settings.coalescing.whenLastLeaves == .finish ? .goOn : .cancel
        if operation.lastLeavePolicy == .cancel { operation.cancelIfUnattended() }
    }

    /// Before anybody gets the response: who may come later must find it where they look, or find that they may not have it.
    private func announce(_ response: StoredResponse, _ sharing: Sharing) {
        guard plan.isShared || sharing.isForSeveral, let operation else { return }
        let store = worker.shared.store
        if response.facts.contains(.varies), plan.isShared {
            var key = plan.key
            key.variant = response.variantKey
            if key != plan.key { worker.fetches(of: request).addAlias(operation, for: key) }
            store.learn(response.varyRule, for: request.key)
        }
        switch sharing {
        case .nobody(let reason):
            operation.close()
            guard plan.isShared || reason != .method else { return }
            guard worker.settings.coalescing.isEnabled, reason.isRemembered else { return }
            let until = worker.loop.now + worker.settings.coalescing.unshareableTTL.nanoseconds
            store.markUnshareable(request.key, until: until, reason: reason)
        case .waitersOnly:
            operation.close()
        case .everyone, .whileArriving:
            store.clearMarker(request.key)
        }
    }

    private func isStorable(_ facts: ResponseFacts) -> Bool {
        guard request.route.isCached, !request.hasContent else { return false }
        return facts.storability(
            method: request.method, request: request.directives, hasAuthorization: request.hasAuthorization,
            policy: request.route.policy) == .store
    }

    private func makeResponse(
        _ head: borrowing ReceivedHead, _ facts: ResponseFacts, length: Int?, keepsWhole: Bool
    ) -> StoredResponse {
        let loop = worker.loop
        let bound = LoopBound(self, on: loop)
        let handle = loop.handle
        let body = GrowingBody(
            budget: worker.shared.budget, expectedLength: length,
            window: keepsWhole ? nil : worker.storage.streamingWindow
        ) { handle.post { bound.value.bodyHasRoom() } }
        let rule = facts.contains(.varies) ? VaryRule(head.fields) ?? .none : .none
        let kept = keptHead(head, facts, isForLeader: plan.isTransparent && !willBeStored)
        let fields = request.fields
        return StoredResponse(
            readyHead: kept.bytes, head: kept, facts: facts, body: body, varyRule: rule,
            variantKey: VariantKey(fields.view, under: rule))
    }

    private func keptHead(_ head: borrowing ReceivedHead, _ facts: ResponseFacts, isForLeader: Bool) -> HeadBlock {
        // The length is written anew with each response.
        StoredFields.head(
            keeping: head.fields, facts: facts, policy: request.route.policy, dropping: FieldSet(.contentLength),
            isForLeader: isForLeader)
    }

    /// RFC 9111 §4.3.5: what a response to HEAD says of the stored responses to GET.
    private func freshenFromHead(_ head: borrowing ReceivedHead, _ facts: ResponseFacts) {
        let policy = request.route.policy
        let fields = request.fields
        for stored in plan.resource?.responses ?? [] where stored.answers(fields.view) {
            let old = stored.head
            let verdict = HeadFreshening(
                head: head.fields, headFacts: facts, stored: old.view, storedFacts: stored.facts, storedLength: stored.body.length)
            let new: StoredResponse
            switch verdict {
            case .none:
                continue
            case .expire:
                var expired = stored.facts
                expired.expire(at: worker.moment)
                new = stored.with(head: old, facts: expired)
            case .update:
                let newHead = Freshening.head(old, updatedWith: head.fields, facts: facts, policy: policy)
                new = stored.with(head: newHead, facts: ResponseFacts(
                    freshened: stored.facts, head: newHead.view, by: head.fields, requested: sentAt, received: facts.received,
                    policy: policy))
            }
            _ = worker.shared.store.freshen(stored, by: new, under: request.key, generation: generation)
        }
    }

    /// RFC 9111 §4.3.4: the stored response that the 304 is about, with its new fields.
    private func freshened(by head: borrowing ReceivedHead, at now: Moment) -> StoredResponse? {
        let policy = request.route.policy
        let notModified = ResponseFacts(
            status: head.head.status, fields: head.fields, requested: sentAt, received: now, policy: policy)
        var selection = FresheningSelection(notModified: notModified)
        let candidates = plan.resource?.responses ?? []
        for stored in candidates {
            let storedHead = stored.head
            selection.add(storedHead.view, facts: stored.facts, notModified: head.fields)
        }
        var chosen: StoredResponse?
        for index in selection.selected {
            let old = candidates[index]
            let newHead = Freshening.head(old.head, updatedWith: head.fields, facts: notModified, policy: policy)
            let facts = ResponseFacts(
                freshened: old.facts, head: newHead.view, by: head.fields, requested: sentAt, received: now, policy: policy)
            let new = old.with(head: newHead, facts: facts)
            let mayStay = facts.storability(
                method: .get, request: request.directives, hasAuthorization: request.hasAuthorization, policy: policy)
            if mayStay == .store {
                _ = worker.shared.store.freshen(old, by: new, under: request.key, generation: generation)
            } else {
                worker.shared.store.invalidate(request.key)
            }
            let fields = request.fields
            if new.answers(fields.view) { chosen = new }
        }
        return chosen
    }

    func exchange(_ exchange: Exchange, received body: Span<UInt8>) -> BodyIntake {
        lastProgress = worker.loop.now
        guard state == .streaming, let response else { return .taken }
        var result = response.body.append(body)
        if result == .noMemory, worker.shared.store.makeRoom(bytes: max(body.count, GrowingBody.laterPieceSize)) {
            result = response.body.append(body)
        }
        switch result {
        case .accepted:
            if willBeStored, response.body.length > worker.storage.maxObjectSize { stopKeepingWhole(response) }
            return .taken
        case .acceptedAndFull:
            isPaused = true
            return .takenAndFull
        case .noMemory:
            stopKeepingWhole(response)
            waitForMemory()
            return .refused
        }
    }

    /// Too large, or no memory: from now on only what its readers still need is kept.
    private func stopKeepingWhole(_ response: StoredResponse) {
        willBeStored = false
        operation?.close()
        operation?.lastLeavePolicy = .cancel
        response.body.limit(toWindow: worker.storage.streamingWindow)
        operation?.cancelIfUnattended()
    }

    private func waitForMemory() {
        isPaused = true
        worker.loop.schedule(after: Worker.memoryRetryInterval) { [weak self] in self?.bodyHasRoom() }
    }

    private func bodyHasRoom() {
        guard state == .streaming else { return }
        isPaused = false
        lastProgress = worker.loop.now
        exchange?.resume()
    }

    func exchange(_ exchange: Exchange, endedWith trailers: ByteSlice?) {
        guard state == .streaming, let response else { return }
        response.body.complete(trailers: trailers)
        // Into the store first, out of the in-flight table afterwards: nobody may find it in neither.
        if willBeStored {
            _ = worker.shared.store.store(
                response, under: request.key, generation: generation, popularity: max(0, (operation?.waiterCount ?? 0) - 1))
        }
        finish(nil)
    }

    func exchange(_ exchange: Exchange, upgradedTo connection: UpstreamConnection, head: borrowing ReceivedHead) {
        let buffer = ByteBuffer(capacity: 512)
        buffer.appendStatusLine(head.head.status, reason: head.fields.bytes.extracting(head.head.reason.range))
        buffer.appendFields(head.fields, connection: head.head.connection)
        buffer.append("Connection: Upgrade\r\n")
        var line = head.fields.firstIndex(of: .upgrade)
        while let index = line {
            buffer.appendField("Upgrade", head.fields.value(at: index))
            line = head.fields.firstIndex(of: .upgrade, from: index + 1)
        }
        buffer.appendLineEnd()
        let client = client
        // The place among the origin's fetches is free again: a tunnel is bounded by the client connections.
        finish(.failure(OperationError.cancelled))
        if let client { client.fetch(self, upgradedTo: connection, head: buffer) } else { connection.closeTunnel() }
    }

    func exchange(_ exchange: Exchange, failedWith error: UpstreamError) {
        worker.noteUpstreamFailure(error, of: request)
        switch state {
        case .asking:
            originFailed(error)
        case .streaming:
            // What was handed out ends short; nothing is stored (RFC 9111 §3.3).
            response?.body.fail()
            finish(nil)
        case .new, .over:
            break
        }
    }

    func exchangeTakesContent(_ exchange: Exchange) { client?.fetchTakesContent(self) }
}

extension UpstreamError {
    /// What this means to a stored response that might stand in (RFC 9111 §4.2.4).
    var originFailure: OriginFailure {
        switch failure {
        case .connectTimeout, .headTimeout, .bodyTimeout: .timeout
        case .unavailable: .overloaded
        case .resolve, .connect, .send, .closed, .head, .body: .unreachable
        }
    }
}

extension UpstreamRequest.Content {
    init(_ framing: MessageFraming) {
        self = switch framing {
        case .none, .length(0), .untilClose: .none
        case .length: .length
        case .chunked: .chunked
        }
    }
}

extension MessageFraming {
    /// The body's length where the message announces it.
    var announcedLength: Int? {
        switch self {
        case .none: 0
        case .length(let length): Int(clamping: length)
        case .chunked, .untilClose: nil
        }
    }
}

extension Sharing {
    /// Whether more than the client that asked may have the response.
    var isForSeveral: Bool {
        switch self {
        case .everyone, .whileArriving, .waitersOnly: true
        case .nobody: false
        }
    }
}

extension NotSharedReason {
    /// Whether the next response for the key will likely be no more shareable: worth remembering.
    var isRemembered: Bool {
        switch self {
        case .noStore, .noCache, .private, .authorization, .setCookie, .varyStar, .notCacheable: true
        case .method, .status, .requestNoStore, .range, .serverError: false
        }
    }
}
