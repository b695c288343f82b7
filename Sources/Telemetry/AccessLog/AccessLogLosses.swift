/// Collects the lines that were not written. The first loss is reported in the diagnostics log at once, later losses
/// together, after an interval.
///
/// A disk stays full for hours, and the log is drained many times a second.
public struct AccessLogLosses: Sendable {
    /// The time between two notices.
    public static let interval = Duration.seconds(10)

    /// The content of a notice: all losses since the notice before.
    public struct Notice: Sendable, Equatable {
        /// Lines that the sink did not accept.
        public var lost = 0
        /// Records dropped because their batch was full.
        public var dropped: UInt64 = 0
        /// The last `errno` of the sink.
        public var failure: Int32?
    }

    private var gathered = Notice()
    private var told: ContinuousClock.Instant?

    /// Begins without losses.
    public init() {}

    /// Whether there are losses that `take` will return later.
    public var isSomethingUntold: Bool { gathered != Notice() }

    /// Adds the losses of one drain.
    public mutating func add<Sink: AccessLogSink & ~Copyable>(_ report: AccessLogWriter<Sink>.Report) {
        gathered.lost += report.lost
        gathered.dropped += report.dropped
        gathered.failure = report.failure ?? gathered.failure
    }

    /// The losses to report now, if any.
    /// - Parameter isLast: there will be no later chance to report them.
    public mutating func take(at now: ContinuousClock.Instant, isLast: Bool = false) -> Notice? {
        guard gathered != Notice(), isLast || told.map({ now - $0 >= Self.interval }) ?? true else { return nil }
        defer { gathered = Notice() }
        told = now
        return gathered
    }
}
