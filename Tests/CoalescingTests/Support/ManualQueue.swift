@testable import Coalescing

/// A callback queue that runs only when told to, so that a test stands between the decision and the call.
final class ManualQueue: CallbackQueue {
    private let callbacks = Protected<[@Sendable () -> Void]>([])
    private let total = Protected(0)
    private let running = Protected(false)

    /// How often it was woken up so far.
    var wakeUps: Int { total.withLock { $0 } }

    /// True while a callback runs here.
    var isRunning: Bool { running.withLock { $0 } }

    func enqueue(_ callback: @escaping @Sendable () -> Void) {
        total.withLock { $0 += 1 }
        callbacks.withLock { $0.append(callback) }
    }

    func run() {
        running.withLock { $0 = true }
        for callback in callbacks.withLock({ queued in
            defer { queued = [] }; return queued
        }) { callback() }
        running.withLock { $0 = false }
    }
}
