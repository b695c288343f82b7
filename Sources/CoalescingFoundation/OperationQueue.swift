public import Coalescing
public import class Foundation.OperationQueue

/// An operation queue calls back its waiters itself: in their order, if it runs one operation at a time
/// (`maxConcurrentOperationCount`).
extension OperationQueue: CallbackQueue {
    /// Runs `callback` as an operation.
    public func enqueue(_ callback: @escaping @Sendable () -> Void) {
        addOperation(callback)
    }
}
