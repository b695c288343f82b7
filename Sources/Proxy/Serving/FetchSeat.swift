import Bytes
import Coalescing
import Libevent

/// A request's place at a fetch: its waiter, and its ear for interim responses. Both are left together, and leaving twice is no harm.
struct FetchSeat {
    let operation: FetchOperation
    /// `nil` for the client of a fetch that is for it alone: what it waits for the fetch brings by itself.
    private let token: WaiterToken?
    /// 0: it hears nothing, or hears it from the fetch that it led.
    private var listener: UInt64 = 0

    init(at operation: FetchOperation, _ token: WaiterToken) {
        self.operation = operation
        self.token = token
    }

    /// Of the client that led `operation`, which nobody else waits for.
    init(alone operation: FetchOperation) {
        self.operation = operation
        token = nil
    }

    /// The interim responses of a fetch that somebody else led, those that were there before as well.
    mutating func hearInterims(_ transaction: LoopBound<Transaction>) {
        listener = operation.interims.hear(transaction)
    }

    /// - Returns: false when the result is on its way, or was there.
    @discardableResult
    func leave() -> Bool {
        guard let token else { return operation.clientLeaves() }
        if listener != 0 { operation.interims.leave(listener) }
        return operation.leave(token)
    }
}
