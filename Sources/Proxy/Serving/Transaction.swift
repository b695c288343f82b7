import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Telemetry
import Upstream

/// One request that is not answered on the hot path, from look-up to the last byte of its response.
///
/// Owned by its client connection, confined to its loop. Whether it led or joined matters only while it waits: a leader
/// waits as long as its fetch does, and its content goes through that fetch. Little content is read ahead: the request
/// takes no slot, and no origin hears of it, for as long as its client takes to send it.
///
/// Here it is looked up, and here its state is written. The extensions only say what follows from what: from a plan to
/// the fetch that is waited for (`Fetching`), from what that brings, or does not in time, to what becomes of it
/// (`Waiting`), from a response to the head that the client gets (`Responding`). Its content has its own
/// (`RequestContent`).
///
/// ```
/// new ─content that may be little→ gathering ─all of it, more than little, no memory for it→ new, and looked up
/// new ─look→ responding                       (stored; 503 or stale at a bound; 504 where only what is stored is wanted)
///   │    └→ waiting ─response→ responding     (led, joined, alone)
///   │          ├─answer for it alone→ responding (304 for a tag that only it has)
///   │          ├─101→ responding (the connection becomes a tunnel)
///   │          ├─released→ new; from the second time on, alone (`SharingHistory`)
///   │          ├─waited too long→ new, once, for the next fetch; or responding (stale, 503)
///   │          ├─failure or 5xx of a joined fetch→ responding (what is stored, where that may stand in)
///   │          └─failure→ responding (502, 503, 504), or new, alone, where errors are not shared
///   └─ responding ─sent→ over;  any ─leave→ over
/// ```
final class Transaction: FetchWaiter, FetchLeader {
    enum State: Equatable { case new, gathering, waiting, responding(Status), over }

    /// The request, whose key may change between looks, as more is learnt about its path's queries.
    private(set) var request: ClientRequest
    private(set) var provenance = Provenance(.synthetic)
    /// What its fetch brought.
    private(set) var fetched: FetchedResponse?
    /// The server that its connection became a tunnel to, or that failed.
    private(set) var contactedServer: ContactedServer?
    /// The client: a reference cycle, broken when it lets go. An unowned reference would be retained at each use as
    /// well.
    let client: any TransactionClient
    let worker: Worker
    /// The seat, while it waits and while the body of its response still comes from a fetch. Beside the state, because
    /// it stays the same from one to the other.
    private(set) var seat: FetchSeat?
    // The small ones stand together: thousands may wait, and each cache line of them is a miss.
    private(set) var state = State.new
    private(set) var sharingHistory = SharingHistory.untried
    var content = RequestContent()
    /// Whether something was stored when the origin was asked: what is stored then may be served at a bound or after a
    /// failure.
    private(set) var hasStandIn = false
    /// The fetch that this request led.
    private(set) var ledFetch: Fetch?
    var wait = Wait()

    init(_ request: consuming ClientRequest, client: any TransactionClient, worker: Worker) {
        self.request = request
        self.client = client
        self.worker = worker
    }

    /// Ends the transaction: the last byte of the response is with the kernel, or the client has left.
    func leave() {
        wait.deadline = wait.deadline.cancelled(on: worker.deadlines)
        // Before leaving, which may begin another request's fetch on this stack.
        state = .over
        leaveSeat()
        stopLeading()
        content.forget()
    }

    /// Parts from the fetch that it led: from now on that tells it nothing, and takes no content of it.
    private func stopLeading() {
        ledFetch.take()?.forgetLeader()
    }

    // MARK: Looking up

    /// Looks up what to do, and begins to do it. The answer may be complete when this returns.
    func look() {
        let request = request
        let resource = worker.resource(for: request)
        if resource == nil {
            if joinCrowd() { return }
        } else if worker.crowd?.latestHead === request.sharedHead {
            // Stored since: the next one takes the hot path again.
            worker.crowd = nil
        }
        let sharing: Lookup.FetchSharing =
            sharingHistory.isGivenUp ? .givenUp : request.route.isCoalesced ? .shared : .coalescingOff
        switch worker.lookUp(request, in: resource, sharing: sharing) {
        case .serve(let stored, _, let refreshes):
            if refreshes { worker.refresh(stored, resource, for: request) }
            serve(stored)
        case .notStored:
            // RFC 9111 §5.2.1.7.
            fail(
                OwnAnswer(.gatewayTimeout, "No fresh response is stored, and the request says only-if-cached."),
                detail: "only-if-cached")
        case .fetch(let plan):
            fetch(plan, for: request, seen: resource)
        }
    }

    /// Looks again: the response that it waited for is not for it.
    func lookAgainAsReleased() {
        sharingHistory.noteRelease()
        lookAgain()
    }

    /// Looks again: what it waited for has taken too long. Nobody joins that any more, so that all who gave it up, and
    /// all who come after them, share the next fetch.
    func lookAgainForNext(after operation: FetchOperation) {
        sharingHistory.noteWait()
        // Not once its response is there: then it is as good as the next one's.
        if operation.closeUnlessDelivered() { worker.metrics.add(.coalescing(.overtaken)) }
        lookAgain()
    }

    /// Looks again: what it shared failed. Its next fetch is for it alone.
    func lookAgainAlone() {
        sharingHistory.giveUp()
        lookAgain()
    }

    private func lookAgain() {
        contactedServer = nil
        state = .new
        request = worker.keyed(request)
        stopLeading()
        look()
    }

    /// Looks again: something was stored or learnt since the look-up. That is progress, so this ends.
    func lookAgainAtOnce() {
        request = worker.keyed(request)
        look()
    }

    // MARK: What becomes of it

    /// Notes that its content is read ahead.
    func beginGathering() {
        state = .gathering
        provenance.verdict = .pass
    }

    /// Notes that its content is read ahead no further.
    func endGathering() { state = .new }

    /// Notes that the origin is about to be asked by `plan`.
    func noteAsking(by plan: FetchPlan) {
        hasStandIn = plan.hasStandIn
        provenance.noteAsking(for: plan.reason)
    }

    /// Waits for `operation`, which it leads, as long as the operator says.
    func lead(_ operation: FetchOperation, at seat: consuming FetchSeat, as role: Role) {
        provenance.role = role
        worker.metrics.add(.coalescing(role == .alone ? .alone : .led))
        ledFetch = operation.work.value
        beginWait(at: seat, of: operation)
        boundWait(for: operation)
    }

    /// Waits for `operation`, which it joined, as long as the operator says.
    func join(_ operation: FetchOperation, at seat: consuming FetchSeat, late: Bool) {
        noteJoined(late: late)
        beginWait(at: seat, of: operation)
        boundWait(for: operation)
    }

    /// Waits in `crowd`, which it joined and which keeps the time of all its members.
    func join(_ crowd: Crowd, at seat: consuming FetchSeat) {
        noteMiss()
        noteJoined(late: false)
        beginWait(at: seat, of: crowd.operation)
    }

    /// Notes that the origin is asked for it without a plan of its own: nothing is stored or known under its key.
    func noteMiss() { provenance.noteAsking(for: request.route.missReason) }

    /// Notes that the origin failed it.
    func noteFailure(_ error: UpstreamError) {
        contactedServer = ContactedServer(address: error.server, duration: error.duration)
    }

    /// Notes that the server sent a response that it does not get.
    func noteContact(with server: ContactedServer, status: Status?) {
        contactedServer = server
        provenance.originStatus = status
    }

    /// Notes why its response is cut off.
    func noteHeldUpOthers() { provenance.detail = Recorder.heldUpOthers }

    private func noteJoined(late: Bool) {
        provenance.noteJoined(late: late)
        worker.metrics.add(.coalescing(late ? .joinedLate : .joined))
    }

    /// - Parameter operation: of the seat, which would be retained if it were reached through that.
    private func beginWait(at seat: consuming FetchSeat, of operation: FetchOperation) {
        state = .waiting
        self.seat = seat
        provenance.operation = operation.number
    }

    /// Notes that its response begins now, or that its connection becomes a tunnel.
    /// - Parameters:
    ///   - provenance: of the response.
    ///   - fetched: what it is made of; `nil` if it is stored or our own.
    func beginResponse(_ status: Status, _ provenance: Provenance, of fetched: FetchedResponse? = nil) {
        wait.deadline.clear()
        state = .responding(status)
        self.provenance = provenance
        self.fetched = fetched
    }

    /// The status of its response; `nil` unless that has begun.
    var status: Status? { if case .responding(let status) = state { status } else { nil } }

    /// Ends its stay at the fetch.
    func leaveSeat() { seat.take()?.leave() }

    /// Stops waiting, and gets nothing from what it waited for.
    /// - Returns: false, with nothing changed, when it does not wait, or its result is on its way.
    func stopWaiting() -> Bool {
        guard state == .waiting, let seat, seat.stopWaiting() else { return false }
        self.seat = nil
        state = .new
        wait = wait.forgetting()
        return true
    }

    // MARK: What comes while it waits

    override func received(_ result: Result<FetchedResponse, OperationError>) {
        guard worker.turns.takeTurn() else {
            wait.received(result)
            return worker.turns.put(self)
        }
        // Most take it on the spot, and need not keep it.
        wait.deadline.clear()
        take(result)
    }

    override func received(interim: ByteSlice) {
        guard state == .waiting else { return }
        let isInLine = wait.hasInterims
        wait = wait.keeping(interim)
        if !isInLine { worker.turns.serve(self) }
    }

    override func deadlineReached() -> Int64? {
        let (reached, left) = wait.deadline.reached(at: worker.now)
        wait.deadline = left
        switch reached {
        case .nothing: return nil
        case .later(let time): return time
        case .due:
            waitedTooLong()
            return nil
        }
    }

    // MARK: What the fetch that it led reports

    /// The fetch that is for this request alone, through which its content goes.
    var unsharedFetch: Fetch? {
        guard let ledFetch, !ledFetch.plan.isShared else { return nil }
        return ledFetch
    }

    var boundConnections: BoundConnections { client.boundConnections }

    var wasReleased: Bool { sharingHistory.wasReleased }

    func fetch(_ fetch: Fetch, received interim: ByteSlice) { send(interim: interim) }

    func fetch(_ fetch: Fetch, brings result: consuming Result<FetchedResponse, OperationError>) {
        wait.received(consume result)
        // Content that came with the response's head goes out with it.
        worker.serveSoon(self)
    }

    func fetch(_ fetch: Fetch, answers response: FetchedResponse) {
        guard let operation = seat?.operation, stopWaiting() else { return }
        // Before anything is sent: a request that comes after it must find a fetch that goes on for others, or none.
        operation.cancelIfUnattended()
        stopLeading()
        respond(response)
    }

    func fetch(_ fetch: Fetch, upgradedTo connection: UpstreamConnection, head: ByteBuffer) {
        guard state == .waiting else { return connection.closeTunnel() }
        leaveSeat()
        var provenance = provenance
        provenance.verdict = .pass
        provenance.originStatus = .switchingProtocols
        beginResponse(.switchingProtocols, provenance)
        contactedServer = ContactedServer(address: connection.addressText, duration: nil)
        client.tunnel(to: connection, head: head)
    }
}

/// The server that was asked for what did not become a response.
struct ContactedServer: Sendable {
    /// The server's address as text; empty when not even that was known.
    let address: ByteSlice
    /// How long it was waited for, in nanoseconds; `nil` when that is not known yet.
    let duration: UInt64?
}
