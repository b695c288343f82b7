import LoopTesting
import Testing

@testable import Routing

@Suite struct ClientTimeoutsTests {
    @Test func `content below the lowest rate uses up its time, content at that rate or above does not`() {
        var settings = ClientSettings()
        settings.bodyTimeout = .seconds(30)
        settings.minBodyRate = 100
        let timeouts = ClientTimeouts(settings, CoalescingSettings())
        /// How long it may go on so, in seconds; at most 1000.
        func lasts(_ bytes: Int, everySeconds pause: Int64) -> Int64 {
            var left = timeouts.content
            var time: Int64 = 0
            while time < 1000 {
                if left <= pause * second { return time + left / second }
                time += pause
                left = timeouts.forContent(left: left - pause * second, after: bytes)
            }
            return time
        }
        #expect(lasts(1, everySeconds: 1) == 30)
        #expect(lasts(50, everySeconds: 1) == 59)
        #expect(lasts(100, everySeconds: 1) == 1000)
        #expect(lasts(2_000, everySeconds: 20) == 1000)
        // What came fast gives no more than the whole time.
        #expect(timeouts.forContent(left: timeouts.content, after: 256 << 10) == timeouts.content)
        #expect(timeouts.forContent(left: 0, after: 1) == second / 100)
        // The process was stopped.
        #expect(timeouts.forContent(left: -60 * second, after: 1) == second / 100)
    }

    @Test func `without a lowest rate, any byte restores the whole time`() {
        var settings = ClientSettings()
        settings.minBodyRate = nil
        let timeouts = ClientTimeouts(settings, CoalescingSettings())
        #expect(timeouts.forContent(left: 0, after: 1) == timeouts.content)
    }
}
