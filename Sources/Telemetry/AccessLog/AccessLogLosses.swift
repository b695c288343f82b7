/// Lines that were not written, gathered: the first loss is reported in the diagnostics log at once, those after it
/// together, after a while.
///
/// A disk stays full for hours, and the log is drained many times a second.
public struct AccessLogLosses: Sendable {
    /// Between two notices.
    public static let interval = Duration.seconds(10)

    /// What a notice reports: everything since the one before.
    public struct Notice: Sendable, Equatable {
        /// Lines the sink did not take.
        public var lost = 0
        /// Records dropped because their batch was full.
        public var dropped: UInt64 = 0
        /// The last `errno` of the sink.
        public var failure: Int32?
    }

    private var gathered = Notice()
    private var told: ContinuousClock.Instant?

    /// Nothing is lost yet.
    public init() {}

    /// Whether there is something that `take` will give later.
    public var isSomethingUntold: Bool { gathered != Notice() }

    /// What one drain did not write.
    public mutating func add<Sink: AccessLogSink & ~Copyable>(_ report: AccessLogWriter<Sink>.Report) {
        gathered.lost += report.lost
        gathered.dropped += report.dropped
        gathered.failure = report.failure ?? gathered.failure
    }

    /// What is to be reported now.
    /// - Parameter isLast: there will be no later chance to report it.
    public mutating func take(at now: ContinuousClock.Instant, isLast: Bool = false) -> Notice? {
        guard gathered != Notice(), isLast || told.map({ now - $0 >= Self.interval }) ?? true else { return nil }
        defer { gathered = Notice() }
        told = now
        return gathered
    }
}
