public import Coalescing

/// Calls back on the main actor. For a handler of the main actor, `Waiter.onMain` is shorter.
public final class MainQueue: CallbackQueue {
    /// The one instance, since the main actor is one place.
    public static let shared = MainQueue()

    private init() {}

    /// Runs `callback` on the main actor, never on the caller's stack.
    public func enqueue(_ callback: @escaping @Sendable () -> Void) {
        // Detached: the task that ended the work keeps its task-local values from the handler. With one priority for all,
        // no callback overtakes another.
        Task.detached(priority: .userInitiated) { @MainActor in callback() }
    }
}

extension Waiter {
    /// A waiter whose handler runs on the main actor, and so may touch the main actor's state.
    ///
    ///     users.enqueue(7, waiter: .onMain { result in self.show(result) }) { … }
    ///
    /// - Parameter accepts: see `Waiter.init`.
    public static func onMain(
        accepts: (@Sendable (Value) -> Bool)? = nil,
        handler: @escaping @MainActor (Result<Value, OperationError>) -> Void
    ) -> Waiter {
        Waiter(on: MainQueue.shared, accepts: accepts) { result in MainActor.assumeIsolated { handler(result) } }
    }
}
