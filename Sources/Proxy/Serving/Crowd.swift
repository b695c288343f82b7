import Bytes
import Coalescing
import HTTPSemantics
import Libevent

/// Consecutive requests on one loop that joined the same fetch and ask for nothing special. They share a seat at it, so
/// that ten thousand of them are one waiter there; which of them is served, and which has waited too long, is decided
/// here.
///
/// Owned by its members, and by its worker as long as others may join. Confined to its loop. If the fetch fails, each
/// member is told when its turn comes, like any other waiter.
///
/// ```
/// empty ─first joins→ gathering ─result→ served ─last leaves→ over
///                         └─last leaves→ over
/// ```
final class Crowd: FetchWaiter {
    private enum State {
        case empty
        /// Somebody waits, and others may join.
        case gathering(WaiterToken)
        /// Each member takes the result when its turn comes, and keeps its part of the seat until it leaves.
        case served(WaiterToken, Result<FetchedResponse, OperationError>)
        case over
    }

    private struct Member {
        /// `nil` once it has left.
        var transaction: Transaction?
        /// Until when it waits, in nanoseconds of the loop's clock. Later members wait longer.
        let due: Int64
    }

    let operation: FetchOperation
    let worker: Worker
    private let route: Route
    private var state = State.empty
    /// At the operation's interim responses.
    private var listener = SlotToken.none
    /// In the order in which they came.
    private let members = Exclusive<[Member]>([])
    /// How many of `members` have not left.
    private var present = 0
    /// Members before this one have left or are not waited for any more.
    private var firstWaiting = 0
    private var deadline = Deadline.none
    /// When the last one joined, in nanoseconds of the loop's clock.
    private var lastJoined = Int64.min
    /// What the last one asked for; `nil` unless it is gathering. The next one mostly asks for the same in the same
    /// words, which need not be parsed and copied again.
    private(set) var latestHead: SharedHead?
    /// Those that came, for who joins later.
    private(set) var interims: [ByteSlice] = []
    /// The last one that the result serves: it serves all others with the same head that came no later.
    private var lastServed: ClientRequest?
    /// How many departed members may stay in the list beyond the number present.
    private static let mostEmpty = 1024

    /// Empty at first: the request that prompted it has a seat of its own.
    init(at operation: FetchOperation, route: Route, worker: Worker) {
        self.operation = operation
        self.route = route
        self.worker = worker
    }

    /// Whether somebody waits in it, and others may join.
    var isGathering: Bool {
        switch state {
        case .gathering: true
        case .empty, .served, .over: false
        }
    }
    /// Whether somebody joined in this iteration.
    var isGrowing: Bool { isGathering && lastJoined == worker.now }

    func isFor(_ request: ClientRequest) -> Bool {
        request.route === route && request.key == operation.key.primary && request.visits == operation.key.visits
    }

    // MARK: Joining and leaving

    /// - Returns: `nil` when it is closed: the operation takes no more, the response is there, or most of the members
    ///   have left.
    func join(_ transaction: Transaction) -> FetchSeat? {
        guard members.use({ $0.count }) <= 2 * present + Self.mostEmpty else {
            // The next ones make another.
            closeToOthers()
            return nil
        }
        let due = worker.loop.now + worker.settings.coalescing.waitTimeout.nanoseconds
        switch state {
        case .empty:
            guard takeSeat() else { return nil }
            deadline = worker.deadlines.arm(self, at: due)
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
        operation.noteCookies(of: transaction.request)
        let head = transaction.request.sharedHead
        if latestHead !== head { latestHead = head }
        return .member(self, index: index)
    }

    /// Not once the response is there: the first one would have joined late, and the others could not join.
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

    /// - Returns: false when the result is there, or it had left before.
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
        latestHead = nil
        stopWaiting()
        operation.interims.leave(listener)
        closeToOthers()
    }

    private func closeToOthers() {
        if worker.crowd === self { worker.crowd = nil }
    }

    // MARK: What comes

    override func received(interim: ByteSlice) {
        interims.append(interim)
        var index = 0
        while let member = member(at: index) {
            member.transaction?.received(interim: interim)
            index += 1
        }
    }

    override func received(_ result: Result<FetchedResponse, OperationError>) {
        guard case .gathering(let token) = state else { return }
        state = .served(token, result)
        stopWaiting()
        latestHead = nil
        interims = []
        closeToOthers()
        let turns = worker.turns
        var index = 0
        while let member = member(at: index) {
            if let transaction = member.transaction { turns.serve(transaction) }
            index += 1
        }
    }

    /// `nil` behind the last one. Members may leave while others are called, the last one too.
    private func member(at index: Int) -> Member? { members.use { index < $0.count ? $0[index] : nil } }

    /// What the fetch has for a member; `nil` while it has nothing.
    func result(for request: ClientRequest) -> Result<FetchedResponse, OperationError>? {
        guard case .served(_, let result) = state else { return nil }
        guard case .success(let fetched) = result else { return result }
        if let lastServed, request.sharedHead === lastServed.sharedHead,
            request.arrived.monotonic <= lastServed.arrived.monotonic
        {
            return result
        }
        guard fetched.mayServe(request) else {
            operation.countReleased()
            return .failure(.released)
        }
        lastServed = request
        return result
    }

    // MARK: Time

    private func stopWaiting() { worker.deadlines.cancel(deadline) }

    override func deadlineReached() -> Int64? {
        let now = worker.loop.now
        while let member = member(at: firstWaiting) {
            if let transaction = member.transaction {
                guard member.due <= now else { return member.due }
                firstWaiting += 1
                transaction.waitedTooLong()
            } else {
                firstWaiting += 1
            }
        }
        deadline = .none
        return nil
    }
}
