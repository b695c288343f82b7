/// A listener that is told when an operation reaches chosen phases: for a metric, an access log, a trace.
///
/// Called once per phase, never under a lock, on `queue` or, without one, on the thread that made the change. Notices
/// of one operation made by different threads may overtake each other on the way; each carries its own phase.
public struct OperationObserver: Sendable {
    /// Phases, as a set of bits.
    public struct Phases: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The phases by themselves.
        public static let ready = Phases(.ready)
        public static let executing = Phases(.executing)
        public static let finished = Phases(.finished)
        public static let cancelled = Phases(.cancelled)
        /// The end, whichever it is.
        public static let ended: Phases = [.finished, .cancelled]
        public static let all: Phases = [.ready, .executing, .finished, .cancelled]

        init(_ phase: OperationPhase) { self.init(rawValue: 1 << phase.rawValue) }
    }

    /// What is reported.
    public struct Notice: Sendable {
        /// The operation, and the phase that it has reached.
        public let operation: AnyOperation
        public let phase: OperationPhase
        /// The error it ended with; `nil` before the end and for success.
        public let error: OperationError?
    }

    let phases: Phases
    let queue: (any CallbackQueue)?
    let notify: @Sendable (Notice) -> Void

    /// - Parameters:
    ///   - phases: which are reported.
    ///   - queue: where `notify` is called; `nil`: by whichever thread brings the phase about, so it must not block.
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
