import Libevent
import LoopTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct OnceLaterTests {
    private let later = OnceLater()
    private let runs = Counter()

    @Test func `an action requested before there is a loop runs once on the loop`() throws {
        try onLoop { loop in
            let handle = loop.handle
            later.schedule(after: millisecond) { [later, runs] in
                runs.up()
                later.schedule(after: 20 * millisecond) { handle.stop() }
            }
            later.schedule(after: millisecond) { Issue.record("asked for twice, done twice") }
            later.attach(to: loop)
        }
        #expect(runs.value == 1)
    }

    @Test func `an action requested several times runs once, and can be requested again`() throws {
        try onLoop { loop in
            later.attach(to: loop)
            let handle = loop.handle
            for _ in 0..<3 {
                later.schedule(after: millisecond) { [later, runs] in
                    runs.up()
                    later.schedule(after: millisecond) {
                        runs.up()
                        handle.stop()
                    }
                }
            }
        }
        #expect(runs.value == 2)
    }

    @Test func `an action requested by another thread runs on the loop`() throws {
        try onLoop { loop in
            let handle = loop.handle
            later.attach(to: loop)
            let thread = try LoopThread(name: "asks") { [later, runs] _ in
                later.schedule(after: millisecond) {
                    if handle.isCurrent { runs.up() }
                    handle.stop()
                }
            }
            thread.join()
        }
        #expect(runs.value == 1)
    }

    private final class Counter: Sendable {
        private let count = Atomic(0)
        var value: Int { count.load(ordering: .relaxed) }
        func up() { count.add(1, ordering: .relaxed) }
    }
}
