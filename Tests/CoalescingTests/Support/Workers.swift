import Dispatch
import Glibc
import Repeatable
import Synchronization

@testable import Coalescing

/// Threads that live for the whole test and meet at barriers.
final class Barrier: Sendable {
    private let parties: Int
    private let arrived = Atomic(0)
    private let generation = Atomic(0)

    init(_ parties: Int) { self.parties = parties }

    func wait() {
        let mine = generation.load(ordering: .acquiring)
        if arrived.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue == parties {
            arrived.store(0, ordering: .relaxed)
            generation.store(mine + 1, ordering: .releasing)
            return
        }
        var spins = 0
        while generation.load(ordering: .acquiring) == mine {
            spins += 1
            if spins > 50 { sched_yield() }
        }
    }
}

/// Runs `body(0..<count)` each on a thread of its own and returns when all have.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let group = DispatchGroup()
    for number in 0..<count {
        // A serial queue has a thread of its own; a concurrent one would share a thread for each core.
        DispatchQueue(label: "worker \(number)").async(group: group) { body(number) }
    }
    group.wait()
}

/// Waits for what takes long, without one of the few threads on which the other tests run.
func onThreadOfItsOwn(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { whole in
        DispatchQueue(label: "of its own").async {
            body()
            whole.resume()
        }
    }
}

/// Repeatable randomness.
struct Dice {
    private var generator: SeededGenerator

    init(seed: UInt64) { generator = SeededGenerator(ofTest: seed) }

    mutating func roll() -> UInt64 { generator.next() }

    /// One of `0..<sides`.
    mutating func roll(_ sides: Int) -> Int { Int(truncatingIfNeeded: roll() >> 33) % sides }
}
