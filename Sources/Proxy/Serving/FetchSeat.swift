import Coalescing

/// A request's place at a fetch that it waits for or reads from: its waiter, and its listener for interim responses.
/// Leaving gives up both; leaving twice is harmless.
enum FetchSeat {
    /// Of the client of a fetch that is for it alone: the fetch delivers to it directly.
    case direct(FetchOperation)
    /// As a waiter by itself. `listener`: `.none` where it hears nothing, or is told by the fetch that it led.
    case waiter(FetchOperation, WaiterToken, listener: SlotToken)
    /// Of a crowd, which has one waiter for all its members.
    case member(Crowd, index: Int)

    var operation: FetchOperation {
        switch self {
        case .direct(let operation), .waiter(let operation, _, _): operation
        case .member(let crowd, _): crowd.operation
        }
    }

    var isInCrowd: Bool {
        switch self {
        case .member: true
        case .direct, .waiter: false
        }
    }

    /// - Returns: false when the result is on its way, or was there.
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
}
