import Repeatable
import Testing

@testable import Redis

/// When commands are sent, and when a connection is tried again.
struct BreakerTests {
    private var breaker = Breaker(mostFailures: 3)
    private var random = SeededGenerator(ofTest: 33)

    @Test mutating func `failures in a row open it, and only these`() {
        var opened = [breaker.failed(), breaker.failed()]
        breaker.succeeded()
        for _ in 0..<3 { opened.append(breaker.failed()) }
        #expect(opened == [false, false, false, false, true] && !breaker.isClosed)
        let again = breaker.failed()
        #expect(!again && breaker.state == .open)
    }

    @Test mutating func `only a probe closes it`() {
        for _ in 0..<3 { _ = breaker.failed() }
        breaker.succeeded()
        breaker.probeEnded(isSuccess: true)
        #expect(breaker.state == .open)
        var begun = [breaker.beginProbe(), breaker.beginProbe()]
        breaker.succeeded()
        #expect(breaker.state == .probing && !breaker.isClosed)
        breaker.probeEnded(isSuccess: false)
        #expect(breaker.state == .open)
        begun.append(breaker.beginProbe())
        breaker.probeEnded(isSuccess: true)
        #expect(breaker.state == .closed(failures: 0) && begun == [true, false, true])
        let isProbed = breaker.beginProbe()
        #expect(!isProbed)
    }

    @Test mutating func `each pause is twice the one before, give or take a quarter, up to the longest`() {
        var pauses = PauseSequence(shortest: 50, longest: 1000)
        for expected in [50, 100, 200, 400, 800, 1000, 1000] as [Int64] {
            let pause = pauses.pause(using: &random)
            #expect(pause >= expected - expected / 4 && pause <= expected + expected / 4)
        }
        pauses.reset()
        let first = pauses.pause(using: &random)
        #expect(first <= 63)
    }

    @Test mutating func `the pauses of many machines differ`() {
        let first = (0..<100).map { _ in
            var pauses = PauseSequence(shortest: 50_000_000, longest: 1_000_000_000)
            return pauses.pause(using: &random)
        }
        #expect(Set(first).count > 90)
    }
}
