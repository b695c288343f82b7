import Testing

@testable import Proxy

@Suite struct ArrivingBodyTests {
    @Test func `what waits for memory has one timer at a time`() {
        var body = ArrivingBody()
        let first = body.waitForMemory(at: 10, patience: 100)
        // Woken by other bodies meanwhile, and refused again.
        body.resume()
        let second = body.waitForMemory(at: 20, patience: 100)
        let retries = body.retryTimerFired()
        let third = body.waitForMemory(at: 60, patience: 100)
        #expect([first, second, third] == [.setTimer, .timerIsSet, .setTimer] && retries && body.isPaused)
    }

    @Test func `a timer whose reason is gone tries nothing`() {
        var body = ArrivingBody()
        let first = body.waitForMemory(at: 10, patience: 100)
        body.resume()
        body.foundMemory()
        // It waits for its readers now.
        body.pause()
        let retries = body.retryTimerFired()
        #expect(first == .setTimer && !retries && body.isPaused)
    }

    @Test func `it waits so long and no longer, counted anew once there was memory`() {
        var body = ArrivingBody()
        let waits = [Int64(10), 109, 110].map { now -> ArrivingBody.MemoryWait in
            let wait = body.waitForMemory(at: now, patience: 100)
            _ = body.retryTimerFired()
            return wait
        }
        #expect(waits == [.setTimer, .setTimer, .tooLong])
        body.foundMemory()
        let anew = body.waitForMemory(at: 110, patience: 100)
        #expect(anew == .setTimer)
    }
}
