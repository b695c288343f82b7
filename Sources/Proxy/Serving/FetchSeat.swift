import Coalescing

/// A request's place at a fetch that it waits for or reads from: its waiter, and its listener for interim responses.
/// Leaving gives up both; leaving twice is harmless. A request that only stops waiting keeps both if the result is on
/// its way: by its seat the request counts as a reader of the response.
enum FetchSeat {
    /// The seat of the client of a fetch that is for it alone: the fetch delivers to it directly.
    case direct(FetchOperation)
    /// The seat of a single waiter. `listener`: `.none` if the waiter gets no interim responses, or gets them from the
    /// fetch that it led.
    case waiter(FetchOperation, WaiterToken, listener: SlotToken)
    /// The seat of a member of a crowd, which has one waiter for all its members.
    case member(Crowd, index: Int)

    var operation: FetchOperation {
        switch self {
        case .direct(let operation), .waiter(let operation, _, _): operation
        case .member(let crowd, _): crowd.operation
        }
    }

    /// - Returns: false if the result is on its way, or has arrived.
    @discardableResult
    func leave() -> Bool {
        switch self {
        case .direct(let operation):
            return operation.leaderLeaves()
        case .waiter(let operation, let token, let listener):
            if listener != .none { operation.interims.leave(listener) }
            return operation.leave(token)
        case .member(let crowd, let index):
            return crowd.leave(index)
        }
    }

    /// Leaves, unless the result is on its way.
    /// - Returns: false if it is, or has arrived; then the seat is unchanged.
    func stopWaiting() -> Bool {
        switch self {
        case .waiter(let operation, let token, let listener):
            guard operation.stopWaiting(token) else { return false }
            if listener != .none { operation.interims.leave(listener) }
            return true
        case .direct(let operation):
            // Called only while the fetch has brought no result: before it begins, or instead of taking its result.
            return operation.leaderLeaves()
        case .member(let crowd, let index):
            // A result that is in the mailbox has not reached the crowd: then its member stops waiting, too.
            return crowd.isGathering && crowd.leave(index)
        }
    }
}
