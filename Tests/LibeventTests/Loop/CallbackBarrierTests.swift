import Bytes
import Testing

@testable import Libevent

/// What waits for callbacks on several loops. All of them are this thread's, which lets them run in turns.
@Suite struct CallbackBarrierTests {
    /// What happened, in order.
    private final class Course: Sendable {
        let words = Guarded<[String]>([])
    }

    private let course = Course()

    /// Loops that have joined a barrier.
    private func onLoops(
        _ count: Int, _ body: (_ barrier: CallbackBarrier, _ loops: [EventLoop], _ turns: [Turns]) -> Void
    ) throws {
        let barrier = CallbackBarrier()
        let loops = try (0..<count).map { _ in try EventLoop() }
        let turns = loops.map { Turns(loop: $0) }
        for (loop, turns) in zip(loops, turns) { barrier.add(turns, on: loop) }
        body(barrier, loops, turns)
        for loop in loops { loop.finish() }
    }

    /// - Parameter batches: how many batches of its mailbox.
    private func run(_ loop: EventLoop, batches: Int = 6) {
        @Sendable func stop(_ handle: LoopHandle, after batches: Int) {
            handle.post { if batches == 1 { handle.stop() } else { stop(handle, after: batches - 1) } }
        }
        stop(loop.handle, after: batches)
        loop.run()
    }

    private func note(_ what: String) { course.words.withLock { $0.append(what) } }
    private var noted: [String] { course.words.withLock { $0 } }

    @Test func `the barrier waits for every loop`() throws {
        try onLoops(2) { barrier, loops, _ in
            barrier.whenAllAreCalledBack { note("all") }
            run(loops[0])
            #expect(noted.isEmpty)
            run(loops[1])
            #expect(noted == ["all"])
        }
    }

    @Test func `callbacks posted before the barrier run first, also those deferred to later turns`() throws {
        try onLoops(1) { barrier, loops, turns in
            loops[0].handle.post { note("posted") }
            for number in 0..<2 * Turns.turn { turns[0].put { note("turn \(number)") } }
            barrier.whenAllAreCalledBack { note("all") }
            run(loops[0], batches: 10)
            let expected = ["posted"] + (0..<2 * Turns.turn).map { "turn \($0)" } + ["all"]
            #expect(noted == expected)
        }
    }

    @Test func `a loop that has ended does not delay the barrier`() throws {
        try onLoops(2) { barrier, loops, _ in
            loops[0].finish()
            barrier.whenAllAreCalledBack { note("all") }
            #expect(noted.isEmpty)
            run(loops[1])
            #expect(noted == ["all"])
            loops[1].finish()
            barrier.whenAllAreCalledBack { note("at once") }
            #expect(noted == ["all", "at once"])
        }
    }

    /// - Parameter batches: how many it still does before.
    @Test(arguments: 0..<6) func `a loop that ends meanwhile does not delay the barrier`(after batches: Int) throws {
        try onLoops(1) { barrier, loops, turns in
            for _ in 0..<2 * Turns.turn { turns[0].put {} }
            barrier.whenAllAreCalledBack { note("all") }
            if batches > 0 { run(loops[0], batches: batches) }
            loops[0].finish()
            #expect(noted == ["all"])
        }
    }
}
