import Testing

@testable import Proxy

@Suite struct ArrivingBodyTests {
    private let line = MemoryLine()

    private func wait(_ body: inout ArrivingBody, at now: Int64) -> ArrivingBody.MemoryWait {
        body.waitForMemory(.body, in: line, at: now, patience: 100, wake: {})
    }

    @Test func `what waits for memory has one timer at a time`() {
        var body = ArrivingBody()
        let first = wait(&body, at: 10)
        // Woken by other bodies meanwhile, and refused again.
        body.resume()
        let second = wait(&body, at: 20)
        let retries = body.retryTimerFired()
        let third = wait(&body, at: 60)
        #expect([first, second, third] == [.setTimer, .timerIsSet, .setTimer] && retries && body.isPaused)
    }

    @Test func `a timer whose reason is gone tries nothing`() {
        var body = ArrivingBody()
        let first = wait(&body, at: 10)
        body.resume()
        body.stopWaiting()
        // It waits for its readers now.
        body.pause()
        let retries = body.retryTimerFired()
        #expect(first == .setTimer && !retries && body.isPaused)
    }

    @Test func `it waits so long and no longer, counted anew once there was memory`() {
        var body = ArrivingBody()
        let waits = [Int64(10), 109, 110].map { now -> ArrivingBody.MemoryWait in
            let result = wait(&body, at: now)
            _ = body.retryTimerFired()
            return result
        }
        #expect(waits == [.setTimer, .setTimer, .tooLong])
        body.stopWaiting()
        let anew = wait(&body, at: 110)
        #expect(anew == .setTimer)
    }

    @Test func `so it is once there was memory for some of what waits`() {
        var body = ArrivingBody()
        let first = wait(&body, at: 10)
        body.foundSomeMemory(at: 100)
        let second = wait(&body, at: 150)
        let third = wait(&body, at: 200)
        #expect([first, second, third] == [.setTimer, .timerIsSet, .tooLong])
    }

    @Test func `it stands in line as long as it waits, and keeps its place when its turn was in vain`() {
        var (body, others) = (ArrivingBody(), [MemoryLine.Place]())
        _ = wait(&body, at: 10)
        #expect(!line.letsThrough(nil, for: .body, at: 20))
        for _ in 0..<MemoryLine.front { others.append(line.enter(.body, since: 0, isFirst: false, wake: {})) }
        let hasTurn = body.takeTurn(in: line, at: 20)
        let mayTake = body.mayTake(.body, before: line, at: 20)
        #expect(hasTurn && mayTake)
        _ = wait(&body, at: 20)
        let stillFirst = body.mayTake(.body, before: line, at: 20)
        #expect(stillFirst && !line.letsThrough(others.last, for: .body, at: 20))
        body.stopWaiting()
        others = []
        #expect(line.letsThrough(nil, for: .body, at: 20))
    }

    @Test func `who stands behind the first has no turn`() {
        let others = (0..<MemoryLine.front).map { _ in line.enter(.body, since: 0, isFirst: false, wake: {}) }
        var body = ArrivingBody()
        _ = wait(&body, at: 10)
        let hasTurn = body.takeTurn(in: line, at: 20)
        #expect(!hasTurn && others.count == MemoryLine.front)
        withExtendedLifetime(others) {}
    }
}
