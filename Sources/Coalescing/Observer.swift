/// A listener that is told when an operation reaches chosen phases: for a metric, an access log, a trace.
///
/// Called once per phase, never under a lock, on `queue` or, without a queue, on the thread that made the change.
/// Notices of one operation from different threads may overtake each other on the way; each carries its own phase.
public struct OperationObserver: Sendable {
    /// One report to an observer.
    public struct Notice: Sendable {
        /// The operation, and the phase that it has reached.
        public let operation: AnyOperation
        public let phase: OperationPhase
        /// The error that the operation ended with; `nil` before the end and for success.
        public let error: OperationError?
    }

    /// One bit for each phase.
    private let phases: UInt8
    let queue: (any CallbackQueue)?
    let notify: @Sendable (Notice) -> Void

    /// - Parameters:
    ///   - phases: the phases to report; without any, all.
    ///   - queue: the queue on which `notify` is called. `nil`: the thread that causes the phase calls `notify`, which
    ///     then must not block.
    public init(
        of phases: OperationPhase..., on queue: (any CallbackQueue)? = nil, notify: @escaping @Sendable (Notice) -> Void
    ) {
        self.phases = phases.isEmpty ? .max : phases.reduce(0) { $0 | 1 << $1.rawValue }
        self.queue = queue
        self.notify = notify
    }

    func tell(_ notice: Notice) {
        guard phases & 1 << notice.phase.rawValue != 0 else { return }
        if let queue {
            queue.enqueue { [notify] in notify(notice) }
        } else {
            notify(notice)
        }
    }
}
