import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry
import Upstream

/// One request that is not answered on the hot path, from look-up to the last byte of its response.
///
/// Owned by its client connection, confined to its loop. Whether the request led or joined a fetch matters only while
/// it waits: a leader waits as long as its fetch does, and its content (`RequestContent`) goes through that fetch.
///
/// This file looks the request up, and is the only one to change its state. `FetchSearch` finds the fetch that the
/// request waits for. The extensions have the rules of each further step: from the fetch's result, or the end of the
/// wait, to the next state, from a response to the head that the client gets (`Responding`).
///
/// ```
/// new ─look→ responding                       (stored; 503 or stale at a limit; 504 for `only-if-cached`)
///   │    └→ waiting ─response→ responding     (led, joined, alone)
///   │          ├─answer for this request alone→ responding (304 for a tag that only it has)
///   │          ├─101→ responding (the connection becomes a tunnel)
///   │          ├─released→ new; from the second time on, alone (`SharingHistory`)
///   │          ├─waited too long→ new, once, for the next fetch; or responding (stale, 503)
///   │          ├─failure or 5xx of a joined fetch→ responding (a stored response that may stand in)
///   │          └─failure→ responding (502, 503, 504), or new, alone, where errors are not shared
///   └─ responding ─sent→ over;  any ─leave→ over
/// ```
final class Transaction: WaitingRequest, FetchLeader {
    enum State: Equatable { case new, waiting, responding(Status), over }

    var provenance = Provenance(.synthetic)
    /// The fetch's result, if the response is made of it.
    private(set) var fetched: FetchedResponse?
    /// The server that the client's connection became a tunnel to, that failed, or whose response the client does not
    /// get.
    var contactedServer: ContactedServer?
    /// The client: a reference cycle, broken when the client releases the transaction. An unowned reference would be
    /// retained at each use as well.
    let client: any TransactionClient
    let context: LoopContext
    let latestGroup: LatestGroup
    /// The group in which the request waits for a fetch; also while the body of its response still comes from the
    /// fetch. Not part of the state, because both states have the same group.
    private(set) var group: WaiterGroup?
    // The small properties stand together: thousands of transactions may wait, and each cache line of them is a miss.
    private(set) var state = State.new
    var sharingHistory = SharingHistory()
    /// Whether a response was stored when the request was forwarded: a stored response may be served at a limit or
    /// after a failure.
    var hasStandIn = false
    /// The request's content, if it has any, until the request leaves.
    private(set) var content: RequestContent?
    /// The fetch that this request led, until it leaves.
    private(set) var ledFetch: Fetch?

    init(
        _ request: consuming ClientRequest, _ arrival: borrowing Arrival, client: any TransactionClient,
        in context: LoopContext, latestGroup: LatestGroup
    ) {
        self.client = client
        self.context = context
        self.latestGroup = latestGroup
        super.init(request, arrival)
    }

    /// Ends the transaction: the last byte of the response is with the kernel, or the client has left.
    func leave() {
        // Set before leaving, which may begin another request's fetch on this stack.
        state = .over
        leaveGroup()
        stopLeading()
        content = nil
    }

    /// Detaches from the fetch that it led, which calls the transaction no more and gets no content from it.
    private func stopLeading() {
        ledFetch.take()?.leader = nil
    }

    // MARK: Looking up

    /// Looks the request up, at once or when its content has been read ahead. The answer may be complete when this
    /// returns.
    func begin() {
        guard request.hasContent else { return look() }
        let content = RequestContent(of: self)
        self.content = content
        if !content.beginAhead() { look() }
    }

    /// Looks the request up, and starts the outcome. The answer may be complete when this returns.
    func look() {
        let request = request
        let resource = context.resource(for: request)
        if resource == nil {
            if latestGroup.group != nil, FetchSearch(for: self).followLatest() { return }
        } else if latestGroup.group?.latest === request {
            // A response was stored since: the next request takes the hot path again.
            latestGroup.forget()
        }
        let sharing: Lookup.FetchSharing =
            sharingHistory.isGivenUp ? .givenUp : request.route.isCoalesced ? .shared : .coalescingOff
        switch context.lookUp(request, in: resource, sharing: sharing) {
        case .serve(let stored, _, let refreshes):
            if refreshes { context.refresh(stored, resource, for: request, arrival) }
            serve(stored)
        case .notStored:
            // RFC 9111 §5.2.1.7.
            fail(
                SyntheticResponse(.gatewayTimeout, "No fresh response is stored, and the request says only-if-cached."),
                detail: "only-if-cached")
        case .fetch(let plan):
            FetchSearch(for: self).find(plan, seen: resource)
        }
    }

    /// Looks up again: the fetch that the request waited for has taken too long. No more requests join that fetch, so
    /// that all that gave it up, and all that come later, share the next one. The request does not wait for both: then
    /// two operations would have to call it back exactly once. A response of the first one that comes meanwhile is
    /// stored for later requests.
    func lookAgainForNext(after operation: FetchOperation) {
        sharingHistory.noteWait()
        // Not after its response was delivered: then that is as good as the next fetch's.
        if operation.closeUnlessDelivered() { context.metrics.add(.coalescing(.overtaken)) }
        lookAgain()
    }

    func lookAgain() {
        contactedServer = nil
        state = .new
        request = context.keyed(request)
        stopLeading()
        look()
    }

    /// Looks up again: another request has stored a response or learnt a rule since. Such changes bound the retries.
    func lookAgainAtOnce() {
        request = context.keyed(request)
        look()
    }

    // MARK: State changes

    /// Waits in `group` for the fetch that the request leads.
    func lead(in group: WaiterGroup, as role: Role) {
        provenance.role = role
        context.metrics.add(.coalescing(role == .alone ? .alone : .led))
        ledFetch = group.operation.work.value
        leads = true
        wait(in: group)
    }

    /// Waits in `group` for the fetch that the request joined.
    func join(_ group: WaiterGroup, late: Bool) {
        provenance.noteJoined(late: late)
        context.metrics.add(.coalescing(late ? .joinedLate : .joined))
        leads = false
        wait(in: group)
    }

    private func wait(in group: WaiterGroup) {
        state = .waiting
        self.group = group
        provenance.operation = group.operation.number
        let waitsAsLong = sharingHistory.waitsAsLong(as: group.operation, leading: ledFetch)
        group.add(
            self, until: waitsAsLong ? .max : context.now + context.settings.coalescing.waitTimeout.nanoseconds)
    }

    /// The response begins now, or the connection becomes a tunnel.
    /// - Parameter fetched: the fetch's result, of which the response is made; `nil` if that is stored or synthetic.
    func beginResponse(_ status: Status, _ provenance: Provenance, of fetched: FetchedResponse? = nil) {
        state = .responding(status)
        self.provenance = provenance
        self.fetched = fetched
    }

    /// The status of the response; `nil` unless that has begun.
    var status: Status? { if case .responding(let status) = state { status } else { nil } }

    func leaveGroup() { group.take()?.leave(self) }

    /// Stops waiting, and takes no result from the fetch.
    /// - Returns: false, without a change, if the request does not wait, or its result is on its way.
    func stopWaiting() -> Bool {
        guard state == .waiting, let group, group.stopWaiting(self) else { return false }
        self.group = nil
        state = .new
        return true
    }

    // MARK: Calls of its group

    override func turnCame() {
        guard state == .waiting, let group else { return }
        // Before the result, and so before the response.
        group.sendMissingInterims(self)
        if let result = group.result(for: self) { take(result) }
    }

    /// Sends one or more interim responses, if the client may have them: not after the response has begun.
    override func send(interim: ByteSlice) {
        if state == .waiting, request.head.version != .http10 { client.send(interim: interim) }
    }

    override func waitedTooLong() {
        // The fetch that the request waits for may have got its slot since.
        guard let operation = group?.operation, !sharingHistory.waitsAsLong(as: operation, leading: ledFetch) else {
            return
        }
        // Read before the request leaves. Instead of a slot that it waits for, another fetch would get a later one.
        let isAtWork = operation.hasBegun
        guard stopWaiting() else { return }
        meets(.wait(isAtWork ? operation : nil))
    }

    // MARK: Calls of the fetch that it led

    /// The fetch that is for this request alone, through which the request's content goes.
    var unsharedFetch: Fetch? {
        guard let ledFetch, !ledFetch.plan.isShared else { return nil }
        return ledFetch
    }

    var boundConnections: BoundConnections { client.boundConnections }

    var wasReleased: Bool { sharingHistory.wasReleased }

    func takeContent() -> OutgoingContent? { content?.take() }

    func fetchTakesContent() { content?.resume() }

    func fetchAnswers(_ response: FetchedResponse) {
        guard let operation = group?.operation, stopWaiting() else { return }
        // Before the answer is sent: a request that comes after it must find a fetch that goes on for others, or none.
        operation.cancelIfUnattended()
        stopLeading()
        respond(response)
    }

    func fetchUpgraded(to connection: UpstreamConnection, head: ByteBuffer) {
        guard state == .waiting else { return connection.closeTunnel() }
        leaveGroup()
        var provenance = provenance
        provenance.verdict = .pass
        provenance.originStatus = .switchingProtocols
        beginResponse(.switchingProtocols, provenance)
        contactedServer = ContactedServer(address: connection.addressText, duration: nil)
        client.tunnel(to: connection, head: head)
    }
}

/// The way from the fetch's result, or the end of the wait for it, to the answer or another look-up.
extension Transaction {
    /// Takes the fetch's result.
    func take(_ result: consuming Result<FetchedResponse, OperationError>) {
        // A departed client is noticed when the proxy writes to it.
        guard state == .waiting else { return }
        switch consume result {
        case .success(let fetched):
            if let stale = standIn(for: fetched) { return respond(with: stale, insteadOf: fetched.originStatus) }
            respond(fetched)
        case .failure(let error):
            leaveGroup()
            fetchFailed(error)
        }
    }

    private func fetchFailed(_ error: OperationError) {
        switch error {
        case .released:
            context.metrics.add(.coalescing(.released))
            sharingHistory.noteRelease()
            lookAgain()
        case .failed(let error as NoMemory):
            contactedServer = error.server
            provenance.originStatus = error.status
            fail(.overloaded, detail: Recorder.memoryFull)
        case .failed(let error):
            let error = error as? UpstreamError ?? UpstreamError(.closed, detail: "\(error)")
            contactedServer = ContactedServer(address: error.server, duration: error.duration)
            if let stale = standIn(on: error.originFailure) { return respond(with: stale, insteadOf: nil) }
            if ledFetch == nil, !request.route.policy.sharesErrors {
                sharingHistory.giveUp()
                return lookAgain()
            }
            fail(SyntheticResponse(error), detail: error.word, upstream: error)
        case .cancelled:
            // Fetches with waiters are cancelled only when the program ends.
            fail(SyntheticResponse(.serviceUnavailable, "The proxy is being shut down."), detail: Recorder.shutdown)
        case .abandoned, .dependency:
            fail(SyntheticResponse(.badGateway, "The request to the origin was abandoned."), detail: "abandoned")
        }
    }

    /// No result will come: the fetch is cancelled, and its loop has ended.
    func programEnds() { take(.failure(.cancelled)) }

    private func respond(with stale: StoredResponse, insteadOf status: Status?) {
        leaveGroup()
        var provenance = provenance
        provenance.noteStandIn(stale, status: status, at: context.moment)
        respond(stale, length: stale.bodyLength, persists: client.settlePersistence(), provenance)
    }
}
