import Bytes
import Coalescing
import Libevent

/// A request's place at a fetch: its waiter, and its ear for interim responses. Both are left together, and leaving twice is no harm.
struct FetchSeat {
    let operation: FetchOperation
    private let token: WaiterToken
    /// 0: it hears nothing, or hears it from the fetch that it led.
    private var observer: UInt64 = 0

    init(at operation: FetchOperation, _ token: WaiterToken) {
        self.operation = operation
        self.token = token
    }

    /// The interim responses of a fetch that somebody else led, those that were there before as well.
    mutating func hearInterims(on handle: LoopHandle, _ tell: @escaping @Sendable (ByteSlice) -> Void) {
        observer = operation.interims.observe(on: handle, tell)
    }

    /// - Returns: false when the result is on its way, or was there.
    @discardableResult
    func leave() -> Bool {
        if observer != 0 { operation.interims.leave(observer) }
        return operation.leave(token)
    }
}
