import Bytes
import Coalescing
import HTTPSemantics
import Libevent

/// Consecutive requests on one loop that joined the same fetch and ask for nothing special. They share one seat at the
/// fetch, so that ten thousand of them are one waiter there; the crowd decides which member is served, and which has
/// waited too long.
///
/// Owned by its members, and by its worker as long as other requests may join. Confined to its loop. If the fetch
/// fails, each member is told when its turn comes, like any other waiter.
///
/// ```
/// empty ─first joins→ gathering ─result→ served ─last leaves→ over
///                         └─last leaves→ over
/// ```
///
/// Work that concerns all members is done for a few of them at a time, so that the loop's other clients do not wait for
/// all. Each member gets the result in a turn of its own. While it gathers, the crowd itself takes turns, in which it
/// ends the waits of members whose time is over, and sends the missing interim responses:
///
/// ```
/// resting ─1xx, a request joins after a 1xx, the deadline→ in line ─its turn, and more to do→ in line
///    ▲                                                        └─its turn, and no more to do, or not gathering→ resting
///    └────────────────────────────────────────────────────────────┘
/// ```
///
/// A member gets each interim response once and in order, since the crowd counts how many it was sent; and before its
/// result, since the missing ones are sent when it takes the result.
final class Crowd: FetchWaiter, TurnTaker {
    private enum State {
        case empty
        /// A member waits, and other requests may join.
        case gathering(WaiterToken)
        /// Each member takes the result when its turn comes, and keeps its part of the seat until it leaves.
        case served(WaiterToken, Result<FetchedResponse, OperationError>)
        case over
    }

    private struct Member {
        /// `nil` once it has left.
        var transaction: Transaction?
        /// Until when the member waits, in nanoseconds of the loop's clock. Later members wait longer.
        let due: Int64
        /// How many of the interim responses the member was sent.
        var heard: UInt32 = 0
    }

    /// The end of the members' waits.
    private enum Clock {
        /// No member waits.
        case stopped
        /// Until the first wait ends.
        case armed(Deadline)
        /// The end of a wait came, and there may still be waits that are over.
        case due

        var isDue: Bool {
            switch self {
            case .due: true
            case .stopped, .armed: false
            }
        }
    }

    let operation: FetchOperation
    let worker: Worker
    private let route: Route
    private var state = State.empty
    /// The crowd's listener for the operation's interim responses.
    private var listener = SlotToken.none
    /// The members in the order in which they came.
    private let members = Exclusive<[Member]>([])
    /// How many of `members` have not left.
    private var present = 0
    /// All members before this index have left or no longer wait.
    private var firstWaiting = 0
    private var clock = Clock.stopped
    /// Whether the crowd waits for a turn of its own.
    private var isInLine = false
    /// When the last member joined, in nanoseconds of the loop's clock.
    private var lastJoined = Int64.min
    /// The head of the last member's request; `nil` unless the crowd is gathering. The next request mostly has a head
    /// of the same bytes, which need not be parsed and copied again.
    private(set) var latestHead: ClientRequest?
    /// The interim responses, until all members were sent them, or the result.
    private var interims = CrowdInterims()
    /// The last request that the result serves: it also serves all others with the same head that came no later.
    private var lastServed: (request: ClientRequest, arrival: Moment)?
    /// How many departed members may stay in the list beyond the number present.
    private static let mostEmpty = 1024

    /// The crowd is empty at first: the request that prompted it has a seat of its own.
    init(at operation: FetchOperation, route: Route, worker: Worker) {
        self.operation = operation
        self.route = route
        self.worker = worker
    }

    /// Whether a member waits, and other requests may join.
    var isGathering: Bool {
        switch state {
        case .gathering: true
        case .empty, .served, .over: false
        }
    }
    /// Whether a request joined in this iteration of the loop.
    var isGrowing: Bool { isGathering && lastJoined == worker.now }

    func isFor(_ request: ClientRequest) -> Bool {
        request.route === route && request.key == operation.key.primary && request.visits == operation.key.visits
    }

    // MARK: Joining and leaving

    /// - Returns: `nil` if the crowd is closed: the operation takes no more waiters, the response is there, or most of
    ///   the members have left.
    func join(_ transaction: Transaction) -> FetchSeat? {
        guard members.use({ $0.count }) <= 2 * present + Self.mostEmpty else {
            // The next requests make another crowd.
            closeToOthers()
            return nil
        }
        let due = worker.loop.now + worker.settings.coalescing.waitTimeout.nanoseconds
        switch state {
        case .empty:
            guard takeSeat() else { return nil }
            clock = .armed(worker.deadlines.arm(self, at: due))
        case .gathering(let token):
            guard operation.join(behind: token) else { return nil }
        case .served, .over:
            return nil
        }
        let index = members.use { members in
            members.append(Member(transaction: transaction, due: due))
            return members.count - 1
        }
        present += 1
        lastJoined = worker.now
        let request = transaction.request
        if latestHead !== request {
            operation.noteJoin(of: request)
            latestHead = request
        }
        if !interims.isEmpty { lineUp() }
        return .member(self, index: index)
    }

    /// Fails once the response is there: the first member would have joined late, and the others could not join.
    private func takeSeat() -> Bool {
        guard operation.value == nil else { return false }
        let bound = LoopBound<FetchWaiter>(self, on: worker.loop)
        let waiter = Waiter<FetchedResponse>(on: worker.loop.handle, accepts: { $0.mayServeOthers }) {
            bound.value.received($0)
        }
        guard case .joined(let token, _) = operation.join(waiter) else { return false }
        state = .gathering(token)
        listener = operation.interims.hear(bound)
        return true
    }

    /// - Returns: false if the result is there, or the member had left before.
    func leave(_ index: Int) -> Bool {
        let leaver = members.use { index < $0.count ? $0[index].transaction.take() : nil }
        guard leaver != nil else { return false }
        let (token, wasWaiting): (WaiterToken, Bool)
        switch state {
        case .gathering(let seat): (token, wasWaiting) = (seat, true)
        case .served(let seat, _): (token, wasWaiting) = (seat, false)
        case .empty, .over: return false
        }
        present -= 1
        if present == 0 { end() }
        operation.leave(token)
        return wasWaiting
    }

    private func end() {
        state = .over
        members.use { $0 = [] }
        interims = CrowdInterims()
        latestHead = nil
        stopWaiting()
        operation.interims.leave(listener)
        closeToOthers()
    }

    private func closeToOthers() {
        if worker.crowd === self { worker.crowd = nil }
    }

    // MARK: Interim responses and result

    override func received(interim: ByteSlice) {
        guard case .gathering = state else { return }
        interims.append(interim)
        lineUp()
    }

    override func received(_ result: Result<FetchedResponse, OperationError>) {
        guard case .gathering(let token) = state else { return }
        state = .served(token, result)
        stopWaiting()
        latestHead = nil
        closeToOthers()
        let turns = worker.turns
        var index = 0
        while let member = member(at: index) {
            if let transaction = member.transaction { turns.serve(transaction) }
            index += 1
        }
        // Runs after the last member's turn.
        if !interims.isEmpty { turns.put { [self] in interims = CrowdInterims() } }
    }

    /// `nil` after the last member. Members, even the last one, may leave while others are called.
    private func member(at index: Int) -> Member? { members.use { index < $0.count ? $0[index] : nil } }

    /// The result for a member; `nil` while there is none.
    func result(for request: ClientRequest, arrivedAt time: Moment) -> Result<FetchedResponse, OperationError>? {
        guard case .served(_, let result) = state else { return nil }
        guard case .success(let fetched) = result else { return result }
        if let lastServed, request === lastServed.request,
            time.monotonic <= lastServed.arrival.monotonic
        {
            return result
        }
        guard fetched.mayServe(request, arrivedAt: time) else {
            operation.countReleased()
            return .failure(.released)
        }
        lastServed = (request, time)
        return result
    }

    // MARK: Its turns

    private func lineUp() {
        guard !isInLine else { return }
        isInLine = true
        worker.turns.putAlone(self)
    }

    func turnCame() {
        isInLine = false
        guard case .gathering = state else { return }
        var left = Turns.turn
        if clock.isDue { endWaits(atMost: &left) }
        while left > 0, let index = interims.nextToTell(of: members.use { $0.count }) {
            if tell(index) { left -= 1 }
        }
        if clock.isDue || interims.areToBeTold(to: members.use { $0.count }) { lineUp() }
    }

    /// Sends a member the interim responses that it lacks.
    /// - Returns: whether there were any.
    @discardableResult
    func tell(_ index: Int) -> Bool {
        guard !interims.isEmpty else { return false }
        let all = interims.count
        let (transaction, heard) = members.use { members -> (Transaction?, Int) in
            guard index < members.count else { return (nil, all) }
            let heard = Int(members[index].heard)
            members[index].heard = UInt32(all)
            return (members[index].transaction, heard)
        }
        guard let transaction, heard < all else { return false }
        transaction.send(interim: interims.bytes(since: heard))
        return true
    }

    // MARK: Time

    private func stopWaiting() {
        if case .armed(let deadline) = clock { worker.deadlines.cancel(deadline) }
        clock = .stopped
    }

    override func deadlineReached() -> Int64? {
        clock = .due
        lineUp()
        return nil
    }

    /// Tells the members whose time is over; after the last of them, sets the deadline to the next member's time.
    private func endWaits(atMost left: inout Int) {
        let now = worker.now
        while let member = member(at: firstWaiting) {
            if let transaction = member.transaction {
                guard member.due <= now else {
                    clock = .armed(worker.deadlines.arm(self, at: member.due))
                    return
                }
                guard left > 0 else { return }
                left -= 1
                firstWaiting += 1
                transaction.waitedTooLong()
            } else {
                firstWaiting += 1
            }
        }
        clock = .stopped
    }
}
