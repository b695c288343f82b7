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
/// takes no slot, and no origin hears of it, for as long as its client takes to send it. Here it is looked up; the rest
/// is in the extensions `Fetching`, `Joining`, `Waiting`, `Bounds`, `Responding`, `Content`.
///
/// ```
/// new ─content that may be little→ gathering ─all of it, more than little, no memory for it→ new, and looked up
/// new ─look→ responding                       (stored; 503 or stale at a bound; 504 where only what is stored is wanted)
///   │    └→ waiting ─response→ responding     (led, joined, alone)
///   │          ├─answer for it alone→ responding (304 for a tag that only it has)
///   │          ├─101→ responding (the connection becomes a tunnel)
///   │          ├─released→ new; from the second time on, alone
///   │          ├─waited too long→ new, alone, or responding (stale, 503)
///   │          ├─failure or 5xx of a joined fetch→ responding (what is stored, where that may stand in)
///   │          └─failure→ responding (502, 503, 504), or new, alone, where errors are not shared
///   └─ responding ─sent→ over;  any ─leave→ over
/// ```
final class Transaction: FetchWaiter, TurnTaker {
    enum State: Equatable { case new, gathering, waiting, responding(Status), over }

    /// Released so often, a request goes alone: a third fetch of a key that nobody may share would teach nothing.
    static let mostReleases: UInt8 = 2

    /// Its key may change between looks, as more is learnt about its path's queries.
    private(set) var request: ClientRequest
    var provenance = Provenance(.synthetic)
    /// What its fetch brought.
    var fetched: FetchedResponse?
    /// The server that its connection became a tunnel to, or that failed.
    var contactedServer: ContactedServer?
    /// A reference cycle, broken when the client lets go. An unowned reference would be retained at each use as well.
    let client: any TransactionClient
    let worker: Worker
    /// While it waits, and while the body of its response still comes from a fetch. Beside the state, because it stays
    /// the same from one to the other.
    var seat: FetchSeat?
    // The small ones stand together: thousands may wait, and each cache line of them is a miss.
    private(set) var state = State.new
    /// How often it gave up a fetch that it waited for, and looked again.
    private(set) var releases: UInt8 = 0
    private(set) var mustGoAlone = false
    var contentIsHeldBack = false
    /// What is here of content that is read ahead, until its fetch has it.
    var contentAhead: OutgoingContent?
    /// What was stored, fresh or not, when the origin was asked: it may be served at a bound or after a failure.
    var fallback: StoredResponse?
    /// The fetch that this request led.
    var ledFetch: Fetch?
    /// The result of what it waits for, until its turn comes.
    var result: Result<FetchedResponse, OperationError>?
    var deadline = LazyDeadline<Void>()

    init(_ request: consuming ClientRequest, client: any TransactionClient, worker: Worker) {
        self.request = request
        self.client = client
        self.worker = worker
    }

    /// The last byte of the response is with the kernel, or the client has left.
    func leave() {
        deadline = deadline.cancelled(on: worker.deadlines)
        // Before leaving, which may begin another request's fetch on this stack.
        state = .over
        seat.take()?.leave()
        stopLeading()
        contentAhead = nil
    }

    /// From now on its fetch tells it nothing, and takes no content of it.
    func stopLeading() {
        ledFetch.take()?.forgetLeader()
    }

    // MARK: Looking up

    /// The answer may be complete when it returns.
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
            mustGoAlone ? .alone : request.route.isCoalesced ? .shared : .coalescingOff
        switch worker.lookUp(request, in: resource, sharing: sharing) {
        case .serve(let stored, let reuse, let refreshes):
            if refreshes { worker.refresh(stored, resource, for: request) }
            serve(stored, reuse)
        case .notStored:
            // RFC 9111 §5.2.1.7.
            fail(
                OwnAnswer(.gatewayTimeout, "No fresh response is stored, and the request says only-if-cached."),
                detail: "only-if-cached")
        case .fetch(let plan):
            fetch(plan, for: request, seen: resource)
        }
    }

    /// It does not wait for that fetch any more.
    func lookAgain(alone: Bool = false) {
        contactedServer = nil
        releases += 1
        mustGoAlone = alone || releases >= Self.mostReleases
        state = .new
        request = worker.keyed(request)
        stopLeading()
        look()
    }

    /// Something was stored or learnt since the look-up. That is progress, so this ends.
    func lookAgainAtOnce() {
        request = worker.keyed(request)
        look()
    }

    // MARK: What becomes of it

    /// Its content is read ahead.
    func beginGathering() { state = .gathering }

    /// Its content is read ahead no further.
    func endGathering() { state = .new }

    /// - Parameter operation: of the seat, which would be retained if it were reached through that.
    func wait(at seat: consuming FetchSeat, of operation: FetchOperation) {
        state = .waiting
        self.seat = seat
        provenance.operation = operation.number
    }

    /// It gave up its seat before it was served.
    func stopWaiting() {
        seat = nil
        state = .new
    }

    /// Its response begins now, or its connection becomes a tunnel.
    func beginResponse(_ status: Status) {
        state = .responding(status)
    }

    /// Of its response; `nil` unless that has begun.
    var status: Status? { if case .responding(let status) = state { status } else { nil } }

    // MARK: While it waits

    override func received(_ result: Result<FetchedResponse, OperationError>) {
        if worker.turns.takeTurn() { return take(result) }
        self.result = result
        worker.turns.put(self)
    }

    override func received(interim: ByteSlice) {
        if state == .waiting, request.head.version == .http11 { client.send(interim: interim) }
    }

    func turnCame() {
        guard state == .waiting else { return }
        let due = if case .member(let crowd, _) = seat { crowd.result(for: request) } else { result.take() }
        if let due { take(due) }
    }

    override func deadlineReached() -> Int64? {
        let (reached, left) = deadline.reached(at: worker.now)
        deadline = left
        switch reached {
        case .nothing: return nil
        case .later(let time): return time
        case .due:
            waitedTooLong()
            return nil
        }
    }
}

/// The server that was asked for what did not become a response.
struct ContactedServer: Sendable {
    /// Its address as text; empty when not even that was known.
    let address: ByteSlice
    /// For how long, in nanoseconds; `nil` when that is not known yet.
    let duration: UInt64?
}
