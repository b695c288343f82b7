import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Routing

/// The requests of one loop that wait for one fetch, or for a part of its response: also the single request of a fetch
/// that no other request can join. For the fetch they are one waiter; the group decides which member is served, and
/// which has waited too long.
///
/// Owned by its members; while it gathers, also by its fetch. Confined to its loop. Each member counts at the operation
/// as a waiter, later as a reader of the response, until it leaves.
///
/// ```
/// gathering ─result→ served ─last leaves→ over
///     └─last leaves→ over
/// ```
///
/// While it gathers, each request of the loop that joins the fetch becomes a member. A request that joins when the
/// response is there gets a group of its own, which is served at once.
///
/// Work that concerns all members is done for a few of them at a time, so that the loop's other clients do not wait for
/// all. Each member gets the result in a turn of its own. While it gathers, the group itself takes turns, in which it
/// ends the waits of members whose time is over, and sends the missing interim responses:
///
/// ```
/// resting ─1xx, a request joins after a 1xx, the deadline→ in line ─its turn, and more to do→ in line
///    ▲                                                        └─its turn, and no more to do, or not gathering→ resting
///    └────────────────────────────────────────────────────────────┘
/// ```
///
/// A member gets each interim response once and in order, since the group counts how many it was sent; and before its
/// result, since the missing ones are sent when it takes the result.
final class WaiterGroup: FetchWaiter, TurnTaker {
    private enum State {
        /// The members wait for the result.
        case gathering
        /// Each member takes the result when its turn comes, and stays until its response is sent.
        case served(Result<FetchedResponse, OperationError>)
        case over
    }

    private struct Member {
        /// `nil` once it has left.
        var waiting: WaitingRequest?
        /// Until when the member waits, in nanoseconds of the loop's clock; `.max`: until the fetch ends. Of two others
        /// the later one waits longer.
        var due: Int64
        /// How many of the interim responses the member was sent.
        var heard: UInt32 = 0
    }

    /// The end of the members' waits.
    private enum Clock {
        /// No member's wait will end by itself.
        case stopped
        /// Until the first wait ends.
        case armed(Deadline)
        /// The end of a wait came, and there may still be waits that are over.
        case due
    }

    let operation: FetchOperation
    private let context: LoopContext
    /// The members' token at the operation, which all of them share.
    private var token = WaiterToken.none
    private var state = State.gathering
    /// The first member, which the leader is if it is of this loop. Stored apart: most groups have one member.
    private var first = Member(waiting: nil, due: .max)
    /// The other members in the order in which they came; `nil` before the second one.
    private var others: Exclusive<[Member]>?
    /// How many members have come. Those that have left are counted, until `removeDeparted`.
    private var count = 0
    /// How many of them have not left.
    private var present = 0
    /// All members before this index have left or no longer wait.
    private var firstWaiting = 0
    private var clock = Clock.stopped
    /// The end of the last member's wait that ends by time.
    private var lastDue = Int64.min
    /// Whether the group waits for a turn of its own.
    private var isInLine = false
    /// The interim responses so far.
    private var interims: [ByteSlice] = []
    /// All members before this index were sent all interim responses, or have left.
    private var nextToTell = 0
    /// The last request that the result serves: it also serves all others with the same head that came no later.
    private var lastServed: (request: ClientRequest, time: Int64, generation: UInt64)?
    /// The request of the last member that asks for nothing special, while the next such request may join without
    /// asking the table. The next request mostly has a head of the same bytes, which need not be parsed and copied
    /// again.
    private(set) var latest: ClientRequest?
    /// Called when no request may join without asking the table any more.
    var whenClosed: (() -> Void)?
    /// When a request last joined without asking the table, in nanoseconds of the loop's clock.
    private var lastFollowed = Int64.min
    /// How many departed members may stay in the list beyond the number present.
    private static let mostDeparted = 1024

    init(at operation: FetchOperation, context: LoopContext) {
        self.operation = operation
        self.context = context
    }

    /// The operation's waiter for the group, if the fetch is not of this loop.
    var waiter: Waiter<FetchedResponse> {
        let bound = LoopBound<FetchWaiter>(self, on: context.loop)
        return Waiter(on: context.loop.handle, accepts: { $0.mayServeOthers }) { bound.value.received($0) }
    }

    /// From now on the operation tells the group of interim responses and of the result.
    /// - Parameter token: the token with which the first member joined the operation.
    func beginGathering(_ token: WaiterToken) {
        self.token = token
        interims = operation.add(self, on: context.loop)
    }

    /// The response was there when the only member joined.
    func serve(_ response: FetchedResponse?, _ token: WaiterToken) {
        self.token = token
        if let response { state = .served(.success(response)) }
    }

    private var isGathering: Bool { if case .gathering = state { true } else { false } }
    private var isDue: Bool { if case .due = clock { true } else { false } }

    // MARK: Joining and leaving

    /// Adds a member, which has joined the operation already.
    /// - Parameter due: until when the member waits; `.max`: until the fetch ends.
    func add(_ waiting: WaitingRequest, until due: Int64) {
        if count > 2 * present + Self.mostDeparted { removeDeparted() }
        waiting.place = count
        let member = Member(waiting: waiting, due: due)
        if count == 0 {
            first = member
        } else {
            let others = others ?? Exclusive([])
            self.others = others
            others.use { $0.append(member) }
        }
        count += 1
        present += 1
        switch state {
        case .gathering:
            if due != .max {
                if due < lastDue { shortenWaits(to: due) }
                lastDue = due
                if case .stopped = clock { clock = .armed(context.deadlines.arm(self, at: due)) }
            }
            if !interims.isEmpty { lineUp() }
        case .served:
            context.turns.putSoon(waiting)
        case .over:
            assertionFailure("a request joined a group that is over")
        }
    }

    /// The member leaves, whatever it waits for or reads.
    func leave(_ waiting: WaitingRequest) {
        remove(waiting)
        operation.leave(token)
    }

    /// The member leaves, unless its result is on its way.
    /// - Returns: false, without a change, if it is, or has come.
    func stopWaiting(_ waiting: WaitingRequest) -> Bool {
        guard isGathering, operation.stopWaiting(token) else { return false }
        remove(waiting)
        return true
    }

    private func remove(_ waiting: WaitingRequest) {
        let index = waiting.place
        if index == 0 { first.waiting = nil } else { others?.use { $0[index - 1].waiting = nil } }
        present -= 1
        if present == 0 { end() }
    }

    private func end() {
        let wasGathering = isGathering
        state = .over
        others = nil
        interims = []
        if wasGathering { stopGathering() }
        whenClosed.take()?()
    }

    /// No more members come, and no wait ends by time.
    private func stopGathering() {
        if case .armed(let deadline) = clock { context.deadlines.cancel(deadline) }
        clock = .stopped
        operation.remove(self, on: context.loop.handle)
        latest = nil
        whenClosed.take()?()
    }

    // MARK: The list of members

    private func member(at index: Int) -> Member {
        index == 0 ? first : others?.use { $0[index - 1] } ?? Member(waiting: nil, due: .max)
    }

    /// Members that come and leave all the time while the fetch goes on must not make the list grow without end.
    private func removeDeparted() {
        others?.use { members in
            var kept: [Member] = []
            var (waiting, told) = (0, 0)
            for (index, member) in members.enumerated() where member.waiting != nil {
                if index + 1 < firstWaiting { waiting += 1 }
                if index + 1 < nextToTell { told += 1 }
                kept.append(member)
                member.waiting?.place = kept.count
            }
            members = kept
            count = kept.count + 1
            firstWaiting = min(firstWaiting, 1 + waiting)
            nextToTell = min(nextToTell, 1 + told)
        }
    }

    // MARK: Joining without asking the table

    /// Whether requests have joined without asking the table.
    var wasFollowed: Bool { lastFollowed != .min }
    /// Whether one has in this iteration of the loop.
    var isGrowing: Bool { isGathering && lastFollowed == context.now }

    /// From now on a request like this one may join without asking the table.
    func note(latest request: ClientRequest) { latest = request }

    /// Notes that the request has joined without asking the table.
    func noteFollowing(_ request: ClientRequest) {
        guard isGathering else { return }
        lastFollowed = context.now
        latest = request
    }

    /// Whether the plan of `request`, which asks for nothing special, is that of the latest one.
    func isFor(_ request: ClientRequest) -> Bool {
        request.route === latest?.route && request.key == operation.key.primary
            && request.visits == operation.key.visits
    }

    // MARK: Interim responses and result

    override func received(interim: ByteSlice) {
        guard isGathering else { return }
        // Assigned, not appended in place, which would cost every access to the property a check at run time.
        interims = interims + [interim]
        nextToTell = 0
        if first.waiting?.leads == true {
            // The fetch has told its leader.
            first.heard += 1
            if present == 1 { return }
        }
        lineUp()
    }

    override func received(_ result: Result<FetchedResponse, OperationError>) {
        guard isGathering else { return }
        state = .served(result)
        stopGathering()
        // Content that came with the response's head is sent with it.
        let turns = context.turns
        if let waiting = first.waiting { turns.putSoon(waiting) }
        others?.use { members in
            for member in members { if let waiting = member.waiting { turns.putSoon(waiting) } }
        }
    }

    /// The result for a member; `nil` while there is none.
    func result(for waiting: WaitingRequest) -> Result<FetchedResponse, OperationError>? {
        guard case .served(let result) = state else { return nil }
        guard case .success(let fetched) = result, !waiting.leads else { return result }
        let (request, time, generation) = (waiting.request, waiting.arrival.time, waiting.arrival.generation)
        if let lastServed, request === lastServed.request, time.monotonic <= lastServed.time,
            generation <= lastServed.generation
        {
            return result
        }
        guard fetched.mayServe(request, arrivedAt: time, after: generation) else {
            operation.countReleased()
            return .failure(.released)
        }
        lastServed = (request, time.monotonic, generation)
        return result
    }

    // MARK: Its turns

    private func lineUp() {
        guard !isInLine else { return }
        isInLine = true
        context.turns.putAlone(self)
    }

    func turnCame() {
        isInLine = false
        var left = Turns.turn
        if isGathering, isDue { endWaits(atMost: &left) }
        // Members, even the last one, may leave while others are called.
        guard isGathering else { return }
        if interims.isEmpty { nextToTell = count }
        while left > 0, nextToTell < count {
            if tell(nextToTell) { left -= 1 }
            nextToTell += 1
        }
        if isDue || nextToTell < count { lineUp() }
    }

    /// Sends a member the interim responses that it lacks.
    func sendMissingInterims(_ waiting: WaitingRequest) {
        if !interims.isEmpty { tell(waiting.place) }
    }

    /// - Returns: whether the member lacked any.
    @discardableResult
    private func tell(_ index: Int) -> Bool {
        let (member, interims) = (member(at: index), interims)
        let (heard, all) = (Int(member.heard), interims.count)
        guard let waiting = member.waiting, heard < all else { return false }
        if index == 0 { first.heard = UInt32(all) } else { others?.use { $0[index - 1].heard = UInt32(all) } }
        waiting.send(interim: interims[heard...].inOne())
        return true
    }

    // MARK: Time

    override func deadlineReached() -> Int64? {
        clock = .due
        lineUp()
        return nil
    }

    /// A reload has shortened `wait-timeout`: no member waits longer than one that came after it.
    private func shortenWaits(to due: Int64) {
        if first.due != .max { first.due = min(first.due, due) }
        others?.use { members in
            for index in members.indices where members[index].due != .max {
                members[index].due = min(members[index].due, due)
            }
        }
        guard case .armed(let deadline) = clock else { return }
        context.deadlines.cancel(deadline)
        // The next turn sets the deadline to the time of the first member.
        clock = .due
        lineUp()
    }

    /// Tells the members whose time is over; after the last of them, sets the deadline to the next member's time.
    private func endWaits(atMost left: inout Int) {
        let now = context.now
        while isGathering, firstWaiting < count {
            let member = member(at: firstWaiting)
            if let waiting = member.waiting, member.due != .max {
                guard member.due <= now else {
                    clock = .armed(context.deadlines.arm(self, at: member.due))
                    return
                }
                guard left > 0 else { return }
                left -= 1
                firstWaiting += 1
                waiting.waitedTooLong()
            } else {
                firstWaiting += 1
            }
        }
        clock = .stopped
    }
}
