import Bytes
import Coalescing
import HTTPSemantics
import Libevent

/// Those of one loop who joined the same fetch one behind the other and ask for nothing special. They share a seat at it, so that ten thousand of
/// them are one waiter there; who of them is served, and when it has waited too long, is found out here.
///
/// Owned by its members, and by its worker as long as somebody may join. Confined to its loop.
///
/// ```
/// empty ─first joins→ gathering ─result→ served
///   └──────────────────── │ ─last leaves─ │ ──→ over
/// ```
final class Crowd: FetchWaiter {
    private struct Member {
        /// `nil` once it has left.
        var transaction: Transaction?
        /// Until when it waits, in nanoseconds of the loop's clock. Who comes later waits longer.
        let due: Int64
    }

    let operation: FetchOperation
    let worker: Worker
    private let route: Route
    /// What the last one asked for: the next one mostly asks for the same with the same words, and need not copy them.
    private(set) var latest: KeptHead?
    private var members: [Member] = []
    /// Of those who are in `members`.
    private var present = 0
    private var token = WaiterToken.none
    private var listener: UInt64 = 0
    /// Those that came, for who joins later.
    private(set) var interims: [ByteSlice] = []
    private var result: Result<FetchedResponse, OperationError>?
    /// Members before this one have left or are not waited for any more.
    private var firstWaiting = 0
    private var deadline = Deadline.none

    /// Of nobody yet: whoever joined `operation` last made no use of it.
    init(at operation: FetchOperation, route: Route, worker: Worker) {
        self.operation = operation
        self.route = route
        self.worker = worker
    }

    /// Whether somebody waits in it, and others may join.
    var isGathering: Bool { present > 0 && result == nil }

    func isFor(_ request: ClientRequest) -> Bool { request.route === route && request.key == operation.key.primary }

    // MARK: Joining and leaving

    /// - Returns: its place; `nil` when nobody gets in any more.
    func take(_ transaction: Transaction) -> FetchSeat? {
        guard members.isEmpty ? begin() : isGathering && operation.join(behind: token) else { return nil }
        let due = worker.loop.now + worker.settings.coalescing.waitTimeout.nanoseconds
        if members.isEmpty { deadline = worker.deadlines.arm(self, at: due) }
        members.append(Member(transaction: transaction, due: due))
        present += 1
        latest = transaction.request.kept
        return .among(self, place: members.count - 1)
    }

    /// Takes the seat. Not where the response is there already: that would be late for the first one and over for the others.
    private func begin() -> Bool {
        guard operation.value == nil else { return false }
        let bound = LoopBound<FetchWaiter>(self, on: worker.loop)
        let waiter = Waiter<FetchedResponse>(on: worker.loop.handle, accepts: { $0.mayServeOthers }) { bound.value.received($0) }
        guard case .joined(let token, _) = operation.join(waiter) else { return false }
        self.token = token
        listener = operation.interims.hear(bound)
        return true
    }

    /// - Returns: false when the result is there, or it had left before.
    func leave(_ place: Int) -> Bool {
        guard place < members.count, members[place].transaction.take() != nil else { return false }
        present -= 1
        if present == 0 { end() }
        operation.leave(token)
        return result == nil
    }

    private func end() {
        members = []
        stopWaiting()
        operation.interims.leave(listener)
        if worker.crowd === self { worker.crowd = nil }
    }

    private func stopWaiting() {
        var deadline = deadline
        worker.deadlines.cancel(&deadline)
        self.deadline = deadline
    }

    // MARK: What comes

    override func received(interim: ByteSlice) {
        interims.append(interim)
        for member in members { member.transaction?.received(interim: interim) }
    }

    override func received(_ result: Result<FetchedResponse, OperationError>) {
        self.result = result
        stopWaiting()
        latest = nil
        interims = []
        if worker.crowd === self { worker.crowd = nil }
        let turns = worker.turns
        var place = 0
        // It shrinks to nothing if the last one leaves meanwhile.
        while place < members.count {
            if let transaction = members[place].transaction {
                if turns.isMine() { transaction.turnCame() } else { turns.put(transaction) }
            }
            place += 1
        }
    }

    /// What the fetch has for a member, once it is there.
    func result(for request: ClientRequest) -> Result<FetchedResponse, OperationError>? {
        if case .success(let fetched) = result, !fetched.mayServe(request) { return .failure(.released) }
        return result
    }

    override func deadlineReached(_ kind: UInt8) -> Int64? {
        let now = worker.loop.now
        while firstWaiting < members.count {
            let member = members[firstWaiting]
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
