/// The queue on which a waiter's handler is called, independent of the thread on which the work ended.
///
/// An event loop, a dispatch queue or an actor's executor conforms with a few lines. Identity counts: all waiters of
/// one queue object are called back by a single `enqueue`, so use the same object for all waiters of one place.
public protocol CallbackQueue: AnyObject, Sendable {
    /// Runs `callback` soon, once, in the order of the calls. Called on any thread, never under a lock of this library.
    /// The queue must not drop the callback: an exactly-once promise ends where the queue begins.
    func enqueue(_ callback: @escaping @Sendable () -> Void)
}

/// Calls back at once, on the stack of the call that finished the work.
///
/// For handlers that only hand the result on (resume a continuation, post to a mailbox). A handler with more to do
/// belongs on a queue of its own.
public final class InlineQueue: CallbackQueue {
    /// The one instance: the queue has no state.
    public static let shared = InlineQueue()

    /// Runs `callback` at once, on the caller's stack.
    public func enqueue(_ callback: @escaping @Sendable () -> Void) {
        callback()
    }
}
