import Coalescing

/// What a request has at a fetch that it waits for or reads from: its waiter, and its ear for interim responses. Both are left together, and leaving twice is no harm.
enum FetchSeat {
    /// Of the client of a fetch that is for it alone: what it waits for the fetch brings by itself.
    case alone(FetchOperation)
    /// As a waiter by itself. `listener`: `.none` where it hears nothing, or hears it from the fetch that it led.
    case waiter(FetchOperation, WaiterToken, listener: SlotToken)
    /// Of a crowd, which has one waiter for all its members.
    case member(Crowd, index: Int)

    var operation: FetchOperation {
        switch self {
        case .alone(let operation), .waiter(let operation, _, _): operation
        case .member(let crowd, _): crowd.operation
        }
    }

    var isInCrowd: Bool {
        switch self {
        case .member: true
        case .alone, .waiter: false
        }
    }

    /// - Returns: false when the result is on its way, or was there.
    @discardableResult
    func leave() -> Bool {
        switch self {
        case .alone(let operation):
            return operation.clientLeaves()
        case .waiter(let operation, let token, let listener):
            if listener != .none { operation.interims.leave(listener) }
            return operation.leave(token)
        case .member(let crowd, let index):
            return crowd.leave(index)
        }
    }
}
