import Testing

@testable import Telemetry

/// A feed whose flush time is over when the test says so.
private final class ManualFeed {
    private(set) var feed: AccessLogFeed!
    private let queue: AccessLogQueue
    private var timers: [() -> Void] = []
    private(set) var wakeUps = 0

    init(capacity: Int) {
        queue = AccessLogQueue(capacity: capacity)
        feed = AccessLogFeed(
            queue, startTimer: { [unowned self] in timers.append($0) }, wakeWriter: { [unowned self] in wakeUps += 1 })
    }

    var runningTimers: Int { timers.count }

    func passFlushTime() {
        let due = timers
        timers = []
        for timer in due { timer() }
    }

    func append(_ count: Int = 1) {
        for _ in 0..<count { Example().append(to: feed) }
    }

    /// The numbers of records in the batch that waits, and of those dropped; `nil` if none waits.
    func take() -> (kept: Int, dropped: Int)? {
        var batch = AccessLogBatch(capacity: queue.capacity)
        return queue.exchange(&batch) ? (batch.count, Int(batch.dropped)) : nil
    }
}

@Suite struct AccessLogFeedTests {
    @Test func `a record waits for the flush time, and those after it go with it`() {
        let manual = ManualFeed(capacity: 4096)
        manual.append(3)
        #expect(manual.runningTimers == 1 && manual.wakeUps == 0)
        manual.passFlushTime()
        let taken = manual.take()
        #expect(manual.wakeUps == 1 && taken?.kept == 3)
        manual.append()
        #expect(manual.runningTimers == 1)
    }

    @Test func `a batch that has reached its mark is handed over at once`() {
        let manual = ManualFeed(capacity: 4096)
        while manual.wakeUps == 0 { manual.append() }
        let first = manual.take()
        #expect((first?.kept ?? 0) > 10)
        // The timer of that batch serves the next one.
        manual.append()
        #expect(manual.runningTimers == 1)
        manual.passFlushTime()
        let second = manual.take()
        #expect(second?.kept == 1)
    }

    @Test func `a batch that finds the one before it waiting fills up, drops, and tries again`() {
        let manual = ManualFeed(capacity: 4096)
        while manual.wakeUps == 0 { manual.append() }
        manual.append(100)
        #expect(manual.wakeUps == 1)
        let first = manual.take()
        #expect(first != nil && first?.dropped == 0)
        // The next record finds no room, but the writer waiting.
        manual.append()
        #expect(manual.wakeUps == 2)
        let second = manual.take()
        #expect(second.map { $0.kept + $0.dropped } == 101 && (second?.dropped ?? 0) > 0)
    }

    @Test func `a feed that has ended hands each record over`() {
        let manual = ManualFeed(capacity: 4096)
        manual.append(2)
        manual.feed.finish()
        manual.append()
        manual.append()
        #expect(manual.wakeUps == 3)
        let counts = (0..<4).map { _ in manual.take()?.kept }
        #expect(counts == [2, 1, 1, nil])
        manual.passFlushTime()
        #expect(manual.wakeUps == 3)
    }
}
