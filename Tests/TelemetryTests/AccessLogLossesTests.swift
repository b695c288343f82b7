import Testing

@testable import Telemetry

@Suite struct AccessLogLossesTests {
    private func report(lost: Int = 0, failure: Int32? = nil) -> AccessLogReport {
        let queue = AccessLogQueue()
        let loop = LogLoop(queue)
        let sink = MemorySink()
        if lost > 0 { sink.roomLeft = [0] }
        for _ in 0..<lost { Example().append(to: loop) }
        _ = loop.handOver()
        var writer = AccessLogWriter(queues: [queue], format: .combined, sink: sink)
        return writer.drain()
    }

    @Test func `the first loss is reported at once, later ones together`() {
        var losses = AccessLogLosses()
        let start = ContinuousClock.now
        losses.add(report(lost: 2))
        let first = losses.take(at: start)
        #expect(first?.lost == 2 && first?.failure != nil)
        for step in 1..<100 {
            losses.add(report(lost: 1))
            let next = losses.take(at: start + AccessLogLosses.interval * step / 100)
            #expect(next == nil)
        }
        #expect(losses.isSomethingUntold)
        let later = losses.take(at: start + AccessLogLosses.interval)
        #expect(later?.lost == 99 && !losses.isSomethingUntold)
        #expect(losses.take(at: start + AccessLogLosses.interval * 5) == nil)
    }

    @Test func `losses not yet reported are reported at the end`() {
        var losses = AccessLogLosses()
        let start = ContinuousClock.now
        #expect(losses.take(at: start, isLast: true) == nil)
        losses.add(report(lost: 1))
        #expect(losses.take(at: start)?.lost == 1)
        losses.add(report(lost: 3))
        #expect(losses.take(at: start) == nil)
        #expect(losses.take(at: start, isLast: true)?.lost == 3)
    }
}
