import Synchronization

/// The part of the access log that other threads use: they request a reopening, and read the numbers of lines by fate.
public final class AccessLogStatus: Sendable {
    private let reopenRequested = Atomic<Bool>(false)
    private let written = Atomic<UInt64>(0)
    private let dropped = Atomic<UInt64>(0)
    private let lost = Atomic<UInt64>(0)
    private let failures = Atomic<UInt64>(0)

    public init() {}

    /// Makes the next drain reopen the file first, after log rotation. From any thread.
    public func requestReopen() { reopenRequested.store(true, ordering: .releasing) }

    func takeReopenRequest() -> Bool { reopenRequested.exchange(false, ordering: .acquiring) }

    func countFailure() { failures.wrappingAdd(1, ordering: .relaxed) }

    func add<Sink: AccessLogSink & ~Copyable>(_ report: AccessLogWriter<Sink>.Report) {
        written.wrappingAdd(UInt64(report.written), ordering: .relaxed)
        dropped.wrappingAdd(report.dropped, ordering: .relaxed)
        lost.wrappingAdd(UInt64(report.lost), ordering: .relaxed)
    }

    /// For the metrics page. From any thread.
    public func families() -> [MetricFamily] {
        [
            .counter(
                "log_lines", "Access log lines, by fate.",
                [
                    MetricSample([("fate", "written")], .whole(written.load(ordering: .relaxed))),
                    MetricSample([("fate", "dropped")], .whole(dropped.load(ordering: .relaxed))),
                    MetricSample([("fate", "lost")], .whole(lost.load(ordering: .relaxed))),
                ]),
            .counter(
                "log_failures", "Failures to write or reopen the access log.", failures.load(ordering: .relaxed)),
        ]
    }
}
