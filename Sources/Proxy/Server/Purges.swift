import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage

/// The purges in progress that need a walk of the store. Each is an operation; all of them share one walk (`PurgeWalk`),
/// one step in each iteration of the control loop, so that the loop does other work in between. After a millisecond of work
/// the walk rests for about as long: where it has no core of its own, the workers would wait for it otherwise.
///
/// A request during the walk may still be answered from a response that is not removed yet. Once the walk has ended, no
/// request is answered from a response that was requested before the purge:
///
/// - The fetches in flight when the purge begins are marked. One that begins later sends its request after the purge, so
///   its response may be stored.
/// - But such a fetch may have begun from a response that the walk had not reached: to validate it, to add a part to it,
///   or to fall back on it. So each key that the walk finds is dropped as by the purge of one URL, which marks the fetches
///   in flight for it.
///
/// The limit of connections to the admin listener bounds how many purges share the walk.
///
/// Owned by the server, confined to the control loop.
final class Purges {
    private let shared: SharedState
    private let control: EventLoop
    /// The purges in progress, by their numbers. No two are the same work: the later one is also for what was stored
    /// since the earlier one began.
    private let operations = OperationQueueManager<Int>()
    private var begun = 0
    private var walk = PurgeWalk()
    /// The completions of the purges, by their numbers.
    private var completions: [Int: Completion<Int>] = [:]
    /// Whether the next step is scheduled.
    private var isWalking = false
    /// How long the walk has worked since its last rest.
    private var worked = Duration.zero
    /// How long the walk works until it rests.
    var turn = Duration.milliseconds(1)
    /// How long it rests, in nanoseconds.
    private static let rest: Int64 = 1_000_000

    init(_ shared: SharedState, on control: EventLoop) {
        self.shared = shared
        self.control = control
    }

    /// Begins a purge of `urls`, which are not empty.
    /// - Parameter completion: called on the loop with the number of responses removed; with `nil` if the program ended
    ///   before the walk.
    func begin(_ urls: PurgedURLs, completion: @escaping (Int?) -> Void) {
        shared.invalidateFetches(where: PurgeIndex([urls]).contains)
        begun += 1
        let caller = LoopBound(completion, on: control)
        let purges = LoopBound(self, on: control)
        // On the loop already: only the loop ends a purge.
        let waiter = Waiter<Int>(on: InlineQueue.shared) { caller.value(try? $0.get()) }
        _ = operations.enqueue(begun, waiter: waiter) { [begun] in Purge(number: begun, urls: urls, purges: purges) }
    }

    /// Ends all purges, which have then removed a part of their responses.
    func cancelAll() { operations.cancelAll() }

    fileprivate func begin(_ purge: Purge, _ completion: Completion<Int>) {
        walk.add(purge.urls, as: purge.number, in: shared.store)
        completions[purge.number] = completion
        if !isWalking { goOn() }
    }

    fileprivate func stop(_ purge: Purge) {
        walk.remove(purge.number)
        completions[purge.number] = nil
    }

    private func goOn() {
        isWalking = !walk.isEmpty
        guard isWalking else { return }
        let rests = worked >= turn
        if rests { worked = .zero }
        control.schedule(after: rests ? Self.rest : 0) { [weak self] in self?.step() }
    }

    private func step() {
        // The loop's own clock stands still during an iteration.
        let begun = ContinuousClock.now
        var isNoted = false
        let ended = walk.step(through: shared.store) { key in
            // For fetches that began during the walk and that no longer have an operation that could be marked.
            if !isNoted { shared.variations.invalidateAll() }
            isNoted = true
            return shared.drop(key, keepsNotes: false, except: nil)
        }
        for purge in ended { completions.removeValue(forKey: purge.number)?.finish(.success(purge.dropped)) }
        worked += begun.duration(to: .now)
        goOn()
    }
}

/// One purge.
private struct Purge: Work {
    let number: Int
    let urls: PurgedURLs
    let purges: LoopBound<Purges>

    // No limit delays a purge, so it begins on its caller's stack.
    func begin(_ completion: Completion<Int>) { purges.value.begin(self, completion) }
    func stop() { purges.value.stop(self) }
}
