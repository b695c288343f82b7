import Glibc
import Repeatable
import Synchronization
import Testing

@testable import Coalescing
@testable import CoalescingPlaces

/// `RaceTests` for the forms that are built on operations: tasks with dependencies, values that grow, bursts.
@Suite(.serialized)
struct FormRaceTests {
    private static let events = min(RaceTests.events, Rounds.count * 200_000)

    @Test func `every caller of a task is called once, and gets what its dependencies brought or an error`() async {
        let race = TaskRace(events: Self.events)
        await onThreadOfItsOwn { race.run() }
        #expect(race.faults.entries == [])
        #expect(race.made.total > 0)
        #expect(race.hosts.snapshot.inFlight == 0 && race.pages.snapshot.inFlight == 0)
    }

    @Test(arguments: [false, true])
    func `every element of a burst is acted on once, or dropped by a cancellation`(firstAtOnce: Bool) async {
        let race = BurstRace(events: Self.events / 2, firstAtOnce: firstAtOnce)
        await onThreadOfItsOwn { race.run() }
        #expect(race.wrong == [])
    }

    /// Readers come and go while the value grows.
    @Test func `every reader gets consecutive elements, to the end or until it is told that it is behind`() async {
        let manager = OperationQueueManager<Int>(shards: 4)
        let faults = Log<String>()
        let (read, most) = (Count(), Self.events)
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    var dice = Dice(seed: 8000 + UInt64(worker))
                    while read.total < most {
                        let count = await Self.follow(manager, dice: &dice, faults: faults)
                        read.add(max(1, count))
                    }
                }
            }
        }
        while manager.snapshot.inFlight > 0 { await Task.yield() }
        #expect(faults.entries == [])
        #expect(manager.shards.allSatisfy { $0.table.withLock { $0.isEmpty } })
    }

    private static let length = 400

    /// - Returns: how many elements were read.
    private static func follow(
        _ manager: OperationQueueManager<Int>, dice: inout Dice, faults: Log<String>
    ) async -> Int {
        let (identifier, fromStart, patience) = (dice.roll(3), dice.roll(2) == 0, dice.roll(2 * length))
        let (cancels, yields) = (dice.roll(4) == 0, dice.roll(20))
        let reader = Task {
            var (next, count): (Int?, Int) = (fromStart ? 0 : nil, 0)
            let elements = manager.elements(for: identifier, from: fromStart ? .start : .now, keeping: 16) {
                AsyncStream<Int> { writer in
                    for number in 0..<length { writer.yield(number) }
                    writer.finish()
                }
            }
            do {
                for try await element in elements {
                    if let next, element != next { faults.append("\(element) instead of \(next)") }
                    next = element + 1
                    count += 1
                    if count > patience { return count }
                }
                if let next, next != length { faults.append("ended before \(next)") }
            } catch GrowingError.behind {
            } catch is CancellationError {
                // Also for a reader whose work was cancelled by the last other one just when it joined.
            } catch {
                faults.append("\(error)")
            }
            return count
        }
        if cancels {
            for _ in 0..<yields { await Task.yield() }
            reader.cancel()
        }
        return await reader.value
    }
}

private final class Count: Sendable {
    private let count = Atomic(0)
    var total: Int { count.load(ordering: .relaxed) }
    func add(_ more: Int) { count.add(more, ordering: .relaxed) }
}

/// Pages that need two hosts each.
private final class TaskRace: Sendable {
    private static let threads = 4
    private static let identifiers = 32

    final class OpenLookup: Sendable {
        let completion = Protected<Completion<Int>?>(nil)
    }

    struct Host: Work {
        let number: Int
        let race: TaskRace
        let isPrompt: Bool

        func begin(_ completion: Completion<Int>) {
            if isPrompt { return _ = completion.finish(.success(number)) }
            // An earlier completion is released, and its operation abandoned, after the lock.
            _ = race.open[number].completion.withLock { open in
                defer { open = completion }
                return open
            }
        }
    }

    struct Page: Work {
        let hosts: [Int]
        let race: TaskRace

        func begin(_ completion: Completion<[Int]>) {
            race.made.add(1)
            completion.finish(.success(hosts))
        }
    }

    let faults = Log<String>()
    let made = Count()
    let hosts = OperationQueueManager<Int>(maxConcurrent: 16, maxQueued: 16, shards: 4)
    let pages = OperationQueueManager<Int>(maxConcurrent: 4, maxQueued: 24, shards: 4)
    /// The look-ups that go on.
    private let open = (0..<TaskRace.identifiers).map { _ in OpenLookup() }
    private let rounds: Int
    private let workers = (0..<TaskRace.threads).map { _ in Worker() }
    private let barrier = Barrier(TaskRace.threads)

    init(events: Int) { rounds = events / (Self.threads * Self.identifiers) + 1 }

    func run() {
        onThreads(Self.threads) { [self] number in
            let worker = workers[number]
            worker.moveIn()
            var dice = Dice(seed: 6000 + UInt64(number))
            for _ in 0..<rounds {
                barrier.wait()
                for identifier in 0..<Self.identifiers { act(on: identifier, worker, &dice) }
                barrier.wait()
                // Work that has its slot may still be about to begin, in a task.
                while hosts.snapshot.inFlight + pages.snapshot.inFlight > 0 {
                    pages.cancelAll()
                    hosts.cancelAll()
                    sched_yield()
                }
                barrier.wait()
                worker.runCallbacks()
                worker.judge(faults: faults)
            }
        }
    }

    private func act(on identifier: Int, _ worker: Worker, _ dice: inout Dice) {
        switch dice.roll(8) {
        case 0...3: ask(identifier, worker, &dice)
        case 4...5:
            let completion = open[identifier].completion.withLock { $0.take() }
            // Otherwise it is forgotten.
            if dice.roll(8) > 0 {
                completion?.finish(dice.roll(4) > 0 ? .success(identifier) : .failure(Broken()))
            }
        case 6: pages.operation(for: identifier, as: WorkOperation<Page>.self)?.cancel()
        default: hosts.operation(for: identifier, as: WorkOperation<Host>.self)?.cancel()
        }
        if dice.roll(4) == 0 { worker.runCallbacks() }
    }

    private func ask(_ identifier: Int, _ worker: Worker, _ dice: inout Dice) {
        let (number, other) = (worker.newWaiter(), (identifier + 1) % Self.identifiers)
        let (isPrompt, isOtherPrompt) = (dice.roll(3) == 0, dice.roll(3) == 0)
        let waiter = Waiter<[Int]>(on: worker) { [faults] result in
            worker.called(number, faults: faults)
            switch result {
            case .success([identifier, other]), .failure(.cancelled), .failure(.dependency): break
            case .success, .failure: faults.append("\(identifier) got \(result)")
            }
        }
        let task = OperationTask { [self] in
            (
                hosts.enqueue(identifier, waiter: nil) { Host(number: identifier, race: self, isPrompt: isPrompt) },
                hosts.enqueue(other, waiter: nil) { Host(number: other, race: self, isPrompt: isOtherPrompt) }
            )
        } make: { [self] first, second in
            Page(hosts: [first, second], race: self)
        }
        let enqueued = pages.enqueue(identifier, waiter: waiter, task: task)
        guard let operation = enqueued.operation, let token = enqueued.token else { return worker.isOut(number) }
        if dice.roll(3) == 0, operation.leave(token) { worker.isOut(number) }
    }
}

/// Threads that add to one executor, flush and cancel it, while its clock runs.
private final class BurstRace: Sendable {
    private static let threads = 4

    private let each: Int
    private let clock = ManualClock()
    private let executor: CoalescingExecutor<[Int]>
    /// How often each element was acted on or dropped.
    private let fates: Fates

    private final class Fates: Sendable {
        private let counts: Protected<[UInt8]>

        init(_ elements: Int) { counts = Protected(Array(repeating: 0, count: elements)) }

        func note(_ elements: [Int]) {
            counts.withLock { counts in for element in elements { counts[element] &+= 1 } }
        }

        var wrong: [Int] { counts.withLock { counts in counts.indices.filter { counts[$0] != 1 } } }
    }

    /// The elements that were not acted on, or twice.
    var wrong: [Int] { fates.wrong }

    init(events: Int, firstAtOnce: Bool) {
        each = events / Self.threads
        let fates = Fates(each * Self.threads)
        self.fates = fates
        executor = CoalescingExecutor(
            coalesceWait: .milliseconds(2), maxWait: .milliseconds(5), firstAtOnce: firstAtOnce, timers: clock,
            on: InlineQueue.shared, combine: { $0 += $1 }, act: { fates.note($0) })
    }

    func run() {
        onThreads(Self.threads) { [self] thread in
            var dice = Dice(seed: 5000 + UInt64(thread))
            for number in 0..<each {
                executor.add([thread * each + number])
                switch dice.roll(32) {
                case 0: executor.flush()
                case 1: fates.note(executor.cancel() ?? [])
                case 2...5 where thread == 0: clock.advance(by: .milliseconds(dice.roll(4)))
                default: break
                }
            }
        }
        executor.flush()
    }
}
