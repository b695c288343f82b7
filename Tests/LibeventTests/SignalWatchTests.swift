import Glibc
import Libevent
import Testing

@Suite(.timeLimit(.minutes(1))) struct SignalWatchTests {
    @Test func `a signal reaches the loop that watches for it`() throws {
        try onLoop { loop in
            try loop.onSignal(SIGUSR1) { loop.stop() }
            kill(getpid(), SIGUSR1)
        }
    }
}
