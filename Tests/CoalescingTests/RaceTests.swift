import Glibc
import Repeatable
import Synchronization
import Testing

@testable import Coalescing

/// Random events from several threads on few identifiers, judged against three promises: every caller is called back
/// exactly once (never when `leave` said so), on its own queue, and no identifier is ever worked on twice at a time.
///
/// Each round has the threads walk the same identifiers in step, so that they meet on each; what they do there is drawn
/// by dice. A round has a million events, and a tenth of that under the thread sanitizer, which finds a race without the
/// accident that shows it and takes twenty times as long.
@Suite(.serialized)
struct RaceTests {
    static let events = Rounds.count * (isSanitized ? 100_000 : 1_000_000)
    private static var isSanitized: Bool { unsafe dlsym(nil, "__tsan_init") != nil }

    @Test func `every caller is called once, on its own queue, and no work runs twice at a time`() async {
        let race = Race(isAlwaysShared: true, events: Self.events, seed: 1)
        await onThreadOfItsOwn { race.run() }
        #expect(race.faults.entries == [])
        #expect(race.events >= Self.events)
    }

    @Test
    func `with limits, closing and streams, every caller is called once, on its own queue`()
        async
    {
        let race = Race(isAlwaysShared: false, events: Self.events / 2, seed: 2)
        await onThreadOfItsOwn { race.run() }
        #expect(race.faults.entries == [])
    }
}

/// Counts what works on one identifier. An operation stops working and is counted off in one step: whoever sees that it
/// has stopped may end it, and the next one may begin.
private final class Site: Sendable {
    let working = Protected(0)
}

private final class RacingOperation: CoalescibleOperation<Int>, @unchecked Sendable {
    let number: Int
    let site: Site
    let race: Race
    let isWorking = Atomic(false)
    let finishesAtOnce: Bool
    let dawdles: Bool

    init(_ identifier: Int, race: Race, dice: UInt64) {
        site = race.sites[identifier]
        self.race = race
        finishesAtOnce = dice % 4 == 0
        dawdles = (dice >> 8) % 16 == 0
        number = identifier
        super.init()
        if dice % 3 == 0 { lastLeavePolicy = .cancel }
    }

    override var identifier: (any Hashable & Sendable)? { number }

    /// Threads meet in the narrow places only if somebody dawdles there.
    func dawdle() {
        if dawdles { sched_yield() }
    }

    override func lastWaiterLeft() { dawdle() }

    override func execute() {
        dawdle()
        let others = site.working.withLock { working in
            defer { working += 1 }
            return working
        }
        if others != 0, race.isAlwaysShared {
            race.faults.append("two work on \(String(describing: identifier))")
        }
        // From here on others may end it.
        isWorking.store(true, ordering: .sequentiallyConsistent)
        if finishesAtOnce {
            stopWorking()
            finish(.success(1))
        }
    }

    override func cancelWork() {
        dawdle()
        stopWorking()
    }

    func stopWorking() {
        site.working.withLock { working in
            guard isWorking.exchange(false, ordering: .sequentiallyConsistent) else { return }
            working -= 1
        }
    }
}

/// One thread: the callback queue of its waiters, and what became of each of them.
final class Worker: CallbackQueue {
    private struct State: Sendable {
        var callbacks: [@Sendable () -> Void] = []
        var calls: [UInt8] = []
        var gone: [Bool] = []
        var thread: UInt = 0
    }

    private let state = Protected(State())

    func enqueue(_ callback: @escaping @Sendable () -> Void) {
        state.withLock { $0.callbacks.append(callback) }
    }

    func moveIn() { state.withLock { $0.thread = pthread_self() } }

    func runCallbacks() {
        for callback in state.withLock({ state in
            defer { state.callbacks = [] }; return state.callbacks
        }) { callback() }
    }

    func newWaiter() -> Int {
        state.withLock { state in
            state.calls.append(0)
            state.gone.append(false)
            return state.calls.count - 1
        }
    }

    func called(_ waiter: Int, faults: Log<String>) {
        let isHome = state.withLock { state in
            state.calls[waiter] += 1
            return state.thread == pthread_self()
        }
        if !isHome { faults.append("called elsewhere") }
    }

    /// It will never be called: it left in time or was never let in.
    func isOut(_ waiter: Int) { state.withLock { $0.gone[waiter] = true } }

    /// Judges all waiters and forgets them.
    func judge(faults: Log<String>) {
        let wrong = state.withLock { state in
            defer { (state.calls, state.gone) = ([], []) }
            return zip(state.calls, state.gone).filter { $0 != ($1 ? 0 : 1) }
        }
        for (calls, gone) in wrong {
            faults.append("called \(calls) times, \(gone ? "although it had left" : "not once")")
        }
    }
}

private final class Race: Sendable {
    static let threads = 4
    static let identifiers = 32

    let isAlwaysShared: Bool
    let sites = (0..<Race.identifiers).map { _ in Site() }
    let faults = Log<String>()
    /// One of the operations that a thread is about to enqueue, for others to cancel meanwhile.
    let offered = Protected<RacingOperation?>(nil)
    private let rounds: Int
    private let seed: UInt64
    private let manager: OperationQueueManager<Int>
    private let workers = (0..<Race.threads).map { _ in Worker() }
    private let barrier = Barrier(Race.threads)
    private let counted = Atomic(0)

    var events: Int { counted.load(ordering: .relaxed) }

    init(isAlwaysShared: Bool, events: Int, seed: UInt64) {
        self.isAlwaysShared = isAlwaysShared
        self.seed = seed
        rounds = events / (Self.threads * Self.identifiers) + 1
        let dawdling = OperationObserver(of: .executing) { ($0.operation as? RacingOperation)?.dawdle() }
        manager = OperationQueueManager(
            maxConcurrent: isAlwaysShared ? .max : 8, maxQueued: isAlwaysShared ? .max : 16, shards: 4,
            observers: [dawdling])
    }

    func run() {
        onThreads(Self.threads) { number in
            var thread = RacingThread(
                worker: self.workers[number], race: self, manager: self.manager,
                seed: self.seed &* 1000 &+ UInt64(number))
            thread.worker.moveIn()
            for _ in 0..<self.rounds {
                self.barrier.wait()
                for identifier in 0..<Self.identifiers { thread.act(on: identifier) }
                self.barrier.wait()
                // What is left over is finished by all threads together; only then can the waiters be judged.
                self.takeOffered()?.cancel()
                for operation in self.manager.operations { thread.finish(operation) }
                self.barrier.wait()
                if number == 0 { self.judgeManager() }
                thread.worker.runCallbacks()
                thread.worker.judge(faults: self.faults)
            }
            self.counted.wrappingAdd(thread.events, ordering: .relaxed)
        }
    }

    func takeOffered() -> RacingOperation? { offered.withLock { $0.take() } }

    private func judgeManager() {
        let snapshot = manager.snapshot
        if snapshot.inFlight != 0 { faults.append("\(snapshot.inFlight) left in flight") }
        if snapshot.finished + snapshot.failed + snapshot.cancelled != snapshot.started {
            faults.append("lost an operation")
        }
        if !manager.shards.allSatisfy({ $0.table.withLock { $0.isEmpty } }) { faults.append("left in the table") }
        if sites.contains(where: { $0.working.withLock { $0 } != 0 }) { faults.append("still working") }
    }
}

private struct RacingThread {
    let worker: Worker
    private let race: Race
    private let manager: OperationQueueManager<Int>
    private var dice: Dice
    private var stay: (operation: RacingOperation, token: WaiterToken, waiter: Int)?
    private(set) var events = 0

    init(worker: Worker, race: Race, manager: OperationQueueManager<Int>, seed: UInt64) {
        self.worker = worker
        self.race = race
        self.manager = manager
        dice = Dice(seed: seed)
    }

    mutating func act(on identifier: Int) {
        events += 1
        let choice = dice.roll(16)
        switch choice {
        case 0...6: join(identifier)
        case 7...8: coalesce(identifier)
        case 9...10: leave()
        case 11...13: finish(identifier)
        case 14: (race.takeOffered() ?? manager.operation(for: identifier, as: RacingOperation.self))?.cancel()
        default: disturb(identifier)
        }
        if choice % 5 == 0 { worker.runCallbacks() }
    }

    private func waiter(accepts: (@Sendable (Int) -> Bool)? = nil) -> (Waiter<Int>, Int) {
        let number = worker.newWaiter()
        let waiter = Waiter(on: worker, accepts: accepts) { [worker, race] _ in
            worker.called(number, faults: race.faults)
        }
        return (waiter, number)
    }

    private mutating func join(_ identifier: Int) {
        let isPicky = !race.isAlwaysShared && dice.roll(4) == 0
        let accepts: @Sendable (Int) -> Bool = { $0 > 1 }
        let (waiter, number) = self.waiter(accepts: isPicky ? accepts : nil)
        let roll = dice.roll()
        let race = race
        let enqueued = manager.enqueue(identifier, waiter: waiter, priority: roll % 2 == 0 ? .high : .background) {
            () -> RacingOperation in RacingOperation(identifier, race: race, dice: roll)
        }
        guard let operation = enqueued.operation, let token = enqueued.token else { return worker.isOut(number) }
        switch dice.roll(4) {
        case 0:
            if operation.leave(token) { worker.isOut(number) }
        case 1:
            leave()
            stay = (operation, token, number)
        default:
            break
        }
    }

    private mutating func coalesce(_ identifier: Int) {
        let operation = RacingOperation(identifier, race: race, dice: dice.roll())
        let (waiter, number) = waiter()
        guard case .joined(let token, _) = operation.join(waiter) else { return worker.isOut(number) }
        if dice.roll(4) == 0 { race.offered.withLock { $0 = operation } }
        // Refused, it calls back with `.cancelled`, or with `.abandoned` when nobody has it any longer.
        _ = manager.enqueue(operation: operation)
        if dice.roll(3) == 0, operation.leave(token) { worker.isOut(number) }
    }

    private mutating func leave() {
        guard let stay else { return }
        if stay.operation.leave(stay.token) { worker.isOut(stay.waiter) }
        self.stay = nil
    }

    private mutating func finish(_ identifier: Int) {
        guard let operation = manager.operation(for: identifier, as: RacingOperation.self),
            operation.isWorking.load(ordering: .acquiring)
        else { return }
        switch dice.roll(4) {
        case 0:
            operation.stopWorking()
            operation.finish(.failure(Broken()))
        case 1:
            operation.deliver(1)
        default:
            operation.stopWorking()
            operation.finish(.success(1))
        }
    }

    private mutating func disturb(_ identifier: Int) {
        guard !race.isAlwaysShared else { return coalesce(identifier) }
        switch dice.roll(4) {
        case 0: _ = manager.operation(for: identifier, as: RacingOperation.self)?.close()
        case 1:
            if let operation = manager.operation(for: identifier, as: RacingOperation.self) {
                manager.addAlias(operation, for: (identifier + 1) % Race.identifiers)
            }
        case 2: manager.operation(for: identifier, as: RacingOperation.self)?.waiterLimit = dice.roll(4)
        default:
            manager.pause()
            _ = manager.enqueue(plain: PlainOperation { $0.finish() })
            manager.resume()
        }
    }

    /// Ends what is left over.
    func finish(_ operation: AnyOperation) {
        if let operation = operation as? RacingOperation, operation.isWorking.load(ordering: .acquiring) {
            operation.stopWorking()
            operation.finish(.success(1))
        } else {
            operation.cancel()
        }
    }
}
