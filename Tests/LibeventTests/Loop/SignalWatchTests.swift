import Glibc
import Libevent
import LoopTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct SignalWatchTests {
    @Test func `a signal reaches the loop that watches for it`() throws {
        var count = 0
        try onLoop { loop in
            try loop.onSignal(SIGUSR1) {
                count += 1
                loop.stop()
            }
            kill(getpid(), SIGUSR1)
        }
        #expect(count == 1)
    }
}
