public import Coalescing
public import Dispatch

/// A serial dispatch queue calls back its waiters itself. Use the object that you made: on Linux, `DispatchQueue.main`
/// is a new object each time, so the main queue's waiters name `MainQueue.shared`. A concurrent queue keeps no order.
extension DispatchQueue: CallbackQueue {
    /// Runs `callback` after all that the queue was given before.
    public func enqueue(_ callback: @escaping @Sendable () -> Void) {
        async(execute: callback)
    }
}
