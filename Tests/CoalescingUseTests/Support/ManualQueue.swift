import Coalescing
import Synchronization

/// A callback queue that runs only when told to, so that a test stands between the decision and the call.
final class ManualQueue: CallbackQueue {
    private let callbacks = Mutex<[@Sendable () -> Void]>([])
    private let total = Mutex(0)

    /// How often it was woken up so far.
    var wakeUps: Int { total.withLock { $0 } }

    func enqueue(_ callback: @escaping @Sendable () -> Void) {
        total.withLock { $0 += 1 }
        callbacks.withLock { $0.append(callback) }
    }

    func run() {
        let due = callbacks.withLock { callbacks in
            defer { callbacks = [] }
            return callbacks
        }
        for callback in due { callback() }
    }
}
