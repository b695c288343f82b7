import Testing

@testable import Proxy

@Suite struct ArrivingBodyTests {
    private func wait(_ body: inout ArrivingBody, at now: Int64) -> ArrivingBody.MemoryWait {
        body.waitForMemory(at: now, patience: 100)
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
        body.stopWaitingForMemory()
        // It waits for its readers now.
        body.waitForReaders()
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
        body.stopWaitingForMemory()
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

    @Test func `its turn lasts until it has memory, or waits again`() {
        var body = ArrivingBody()
        let before = wait(&body, at: 10)
        body.takeTurn()
        let inTurn = body.hasTurn
        let inVain = wait(&body, at: 20)
        let after = body.hasTurn
        body.takeTurn()
        let hasWaited = body.stopWaitingForMemory()
        #expect([before, inVain] == [.setTimer, .timerIsSet] && inTurn && !after && hasWaited && !body.hasTurn)
        let hasWaitedTwice = body.stopWaitingForMemory()
        #expect(!hasWaitedTwice)
    }
}
