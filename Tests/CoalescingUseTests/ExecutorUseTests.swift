import Coalescing
import CoalescingPlaces
import Foundation
import Synchronization
import Testing

/// One action for a burst.
struct ExecutorUseTests {
    let loopTimers = ManualTimers()
    let loop = ManualQueue()
    let file = LogFile()

    @Test func `a burst of lines is written at once, on the given queue`() {
        let log = CoalescingExecutor(
            coalesceWait: .milliseconds(50), maxWait: .seconds(1), timers: loopTimers, on: loop,
            combine: { lines, more in lines += more }, act: { lines in file.write(lines) })
        log.add(["GET / 200"])
        log.add(["GET /news 200"])
        loopTimers.advance(by: .milliseconds(50))
        #expect(file.written.entries.isEmpty)
        loop.run()
        #expect(file.written.entries == [["GET / 200", "GET /news 200"]])
    }

    @Test func `the runtime's timers work without an event loop`() async {
        let (written, lines) = AsyncStream<[String]>.makeStream()
        let log = CoalescingExecutor(
            coalesceWait: .milliseconds(1), maxWait: .milliseconds(2), timers: ClockTimers(ContinuousClock()),
            on: InlineQueue.shared,
            combine: { $0 += $1 }, act: { lines.yield($0) })
        log.add(["GET / 200"])
        #expect(await written.first { _ in true } == ["GET / 200"])
    }
}

final class LogFile: Sendable {
    let written = Log<[String]>()
    func write(_ lines: [String]) { written.append(lines) }
}

/// Time that passes only when told to.
final class ManualTimers: TimerSource {
    private struct State: Sendable {
        var now = Duration.zero
        var timers: [(due: Duration, fire: @Sendable () -> Void)] = []
    }

    private let state = Mutex(State())

    var now: Duration { state.withLock { $0.now } }

    func schedule(after delay: Duration, _ fire: @escaping @Sendable () -> Void) {
        state.withLock { $0.timers.append((due: $0.now + delay, fire: fire)) }
    }

    func advance(by step: Duration) {
        let due = state.withLock { state in
            state.now += step
            defer { state.timers.removeAll { $0.due <= state.now } }
            return state.timers.filter { $0.due <= state.now }
        }
        for timer in due { timer.fire() }
    }
}
