import Glibc
import Repeatable
import Synchronization
import Testing

@testable import Coalescing
@testable import CoalescingPlaces

/// `RaceTests` for work without a subclass, much of which waits for its slot in tasks of its leaders; and for `async`
/// callers, whose tasks are cancelled at any moment.
@Suite(.serialized)
struct WorkRaceTests {
    @TaskLocal static var leader = -1

    @Test func `every caller of work is called once, and no work runs twice at a time or is stopped before it began`()
        async
    {
        let race = WorkRace(events: RaceTests.events)
        await onThreadOfItsOwn { race.run() }
        #expect(race.faults.entries == [])
        #expect(race.events >= RaceTests.events)
        #expect(race.manager.snapshot.inFlight == 0)
    }

    /// A value names its leader: a caller that asked for the same identifier and whose task-local value the work saw.
    @Test func `every async caller gets a value of its identifier, a cancellation or a refusal`() async {
        let manager = OperationQueueManager<Int>(maxConcurrent: 2, maxQueued: 6, shards: 4)
        let faults = Log<String>()
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<16 {
                group.addTask {
                    var dice = Dice(seed: 7000 + UInt64(worker))
                    for _ in 0..<RaceTests.events / 160 {
                        await Self.ask(manager, worker: worker, dice: &dice, faults: faults)
                    }
                }
            }
        }
        // The tasks of leaders that were cancelled end by themselves.
        while manager.snapshot.inFlight > 0 { await Task.yield() }
        #expect(faults.entries == [])
        #expect(manager.shards.allSatisfy { $0.table.withLock { $0.isEmpty } })
    }

    private static func ask(
        _ manager: OperationQueueManager<Int>, worker: Int, dice: inout Dice, faults: Log<String>
    ) async {
        let (identifier, waits, form) = (dice.roll(8), dice.roll(3), dice.roll(4))
        let mark = worker * 8 + identifier
        let task = Task {
            try await $leader.withValue(mark) {
                switch form {
                case 0:
                    try await manager.value(for: identifier) { Prompt() }
                case 1:
                    try await manager.elements(for: identifier) {
                        let seen = leader
                        return AsyncStream<Int> {
                            $0.yield(seen)
                            $0.finish()
                        }
                    }.reduce(-1) { $1 }
                default:
                    try await manager.value(for: identifier) {
                        for _ in 0..<waits { await Task.yield() }
                        return leader
                    }
                }
            }
        }
        let cancels = dice.roll(3) == 0
        if cancels {
            for _ in 0..<dice.roll(3) { await Task.yield() }
            task.cancel()
        }
        do {
            let value = try await task.value
            if value < 0 || value % 8 != identifier { faults.append("\(identifier) got \(value)") }
        } catch is CancellationError {
            if !cancels { faults.append("cancelled without a reason") }
        } catch is Refusal {
        } catch {
            faults.append("\(error)")
        }
    }

    /// Ends in a task of its own.
    private struct Prompt: Work {
        func begin(_ completion: Completion<Int>) {
            Task { completion.finish(.success(leader)) }
        }
    }
}

private final class WorkRace: Sendable {
    static let threads = 4
    static let identifiers = 32

    /// One identifier: the work that goes on there.
    final class Site: Sendable {
        let working = Atomic(0)
        let current = Protected<RacingWork?>(nil)
    }

    let sites = (0..<WorkRace.identifiers).map { _ in Site() }
    let faults = Log<String>()
    let manager = OperationQueueManager<Int>(maxConcurrent: 8, maxQueued: 12, shards: 4)
    private let rounds: Int
    private let workers = (0..<WorkRace.threads).map { _ in Worker() }
    private let barrier = Barrier(WorkRace.threads)
    private let counted = Atomic(0)

    var events: Int { counted.load(ordering: .relaxed) }

    init(events: Int) { rounds = events / (Self.threads * Self.identifiers) + 1 }

    func run() {
        onThreads(Self.threads) { [self] number in
            let worker = workers[number]
            worker.moveIn()
            var dice = Dice(seed: 9000 + UInt64(number))
            var stay: (operation: WorkOperation<RacingWork>, token: WaiterToken, waiter: Int)?
            for _ in 0..<rounds {
                barrier.wait()
                for identifier in 0..<Self.identifiers {
                    act(on: identifier, worker, &dice, &stay)
                    counted.add(1, ordering: .relaxed)
                }
                barrier.wait()
                stay = nil
                // Work that has its slot may still be about to begin, in a task.
                while manager.snapshot.inFlight > 0 {
                    manager.cancelAll()
                    sched_yield()
                }
                barrier.wait()
                worker.runCallbacks()
                worker.judge(faults: faults)
                if number == 0 {
                    for site in sites {
                        if site.working.load(ordering: .acquiring) != 0 { faults.append("still working") }
                        site.current.withLock { $0 = nil }
                    }
                }
            }
        }
    }

    private func act(
        on identifier: Int, _ worker: Worker, _ dice: inout Dice,
        _ stay: inout (operation: WorkOperation<RacingWork>, token: WaiterToken, waiter: Int)?
    ) {
        let site = sites[identifier]
        switch dice.roll(8) {
        case 0...3:
            let (roll, number) = (dice.roll(), worker.newWaiter())
            let waiter = Waiter<Int>(on: worker) { [faults] _ in worker.called(number, faults: faults) }
            let enqueued = manager.enqueue(identifier, waiter: waiter) {
                RacingWork(site: site, race: self, dice: roll)
            }
            guard let operation = enqueued.operation, let token = enqueued.token else { return worker.isOut(number) }
            if dice.roll(3) == 0 {
                if operation.leave(token) { worker.isOut(number) }
            } else {
                leave(worker, &stay)
                stay = (operation, token, number)
            }
        case 4:
            leave(worker, &stay)
        case 5...6:
            site.current.withLock { $0 }?.end(dice.roll(3))
        default:
            manager.operation(for: identifier, as: WorkOperation<RacingWork>.self)?.cancel()
        }
        if dice.roll(4) == 0 { worker.runCallbacks() }
    }

    private func leave(
        _ worker: Worker, _ stay: inout (operation: WorkOperation<RacingWork>, token: WaiterToken, waiter: Int)?
    ) {
        if let gone = stay, gone.operation.leave(gone.token) { worker.isOut(gone.waiter) }
        stay = nil
    }
}

/// Work that any thread may end, by its completion.
private final class RacingWork: Work {
    private enum Phase: Sendable {
        case new
        case working(Completion<Int>)
        case over
    }

    let site: WorkRace.Site
    let race: WorkRace
    let dice: UInt64
    private let phase = Protected(Phase.new)

    init(site: WorkRace.Site, race: WorkRace, dice: UInt64) {
        (self.site, self.race, self.dice) = (site, race, dice)
    }

    func begin(_ completion: Completion<Int>) {
        if dice % 16 == 0 { sched_yield() }
        if site.working.add(1, ordering: .sequentiallyConsistent).oldValue != 0 { race.faults.append("two at a time") }
        phase.withLock { phase in
            if case .new = phase {} else { race.faults.append("begun twice, or stopped before") }
            phase = .working(completion)
        }
        site.current.withLock { $0 = self }
        if dice % 5 == 0 { end(Int(dice >> 8) % 3) }
    }

    func stop() {
        if dice % 16 == 1 { sched_yield() }
        take()
    }

    /// Ends the work with a value, with an error, or by forgetting it.
    func end(_ how: Int) {
        let completion = take()
        switch how {
        case 0: completion?.finish(.success(1))
        case 1: completion?.finish(.failure(Broken()))
        default: break
        }
    }

    @discardableResult
    private func take() -> Completion<Int>? {
        phase.withLock { phase in
            guard case .working(let completion) = phase else { return nil }
            phase = .over
            site.working.subtract(1, ordering: .sequentiallyConsistent)
            return completion
        }
    }
}
