/// A listener that is told when an operation reaches chosen phases: for a metric, an access log, a trace.
///
/// Called once per phase, never under a lock, on `queue` or, without a queue, on the thread that made the change.
/// Notices of one operation from different threads may overtake each other on the way; each carries its own phase.
public struct OperationObserver: Sendable {
    /// Phases, as a set of bits.
    public struct Phases: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The single phases.
        public static let ready = Phases(.ready)
        public static let executing = Phases(.executing)
        public static let finished = Phases(.finished)
        public static let cancelled = Phases(.cancelled)
        /// The end, with or without success.
        public static let ended: Phases = [.finished, .cancelled]
        public static let all: Phases = [.ready, .executing, .finished, .cancelled]

        init(_ phase: OperationPhase) { self.init(rawValue: 1 << phase.rawValue) }
    }

    /// One report to an observer.
    public struct Notice: Sendable {
        /// The operation, and the phase that it has reached.
        public let operation: AnyOperation
        public let phase: OperationPhase
        /// The error that the operation ended with; `nil` before the end and for success.
        public let error: OperationError?
    }

    let phases: Phases
    let queue: (any CallbackQueue)?
    let notify: @Sendable (Notice) -> Void

    /// - Parameters:
    ///   - phases: the phases to report.
    ///   - queue: the queue on which `notify` is called. `nil`: the thread that causes the phase calls `notify`, which
    ///     then must not block.
    public init(
        of phases: Phases = .all, on queue: (any CallbackQueue)? = nil, notify: @escaping @Sendable (Notice) -> Void
    ) {
        self.phases = phases
        self.queue = queue
        self.notify = notify
    }

    func tell(_ notice: Notice) {
        guard phases.contains(Phases(notice.phase)) else { return }
        if let queue {
            queue.enqueue { [notify] in notify(notice) }
        } else {
            notify(notice)
        }
    }
}
