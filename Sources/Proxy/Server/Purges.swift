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
/// A soft purge marks the fetches in flight as it begins, and no others: a later fetch brings a response from after the
/// purge.
///
/// A sweep frees the responses that purges of tags have removed, which no request finds any more. While the walk is for a sweep alone,
/// it pauses after each step, so that it takes a small part of a core, however many purges of tags there are.
///
/// The limits of connections, to the admin listener and of clients, bound how many purges share the walk.
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

    /// How long the walk pauses after each step of a sweep alone, in nanoseconds. A step takes a tenth of a millisecond,
    /// so a million responses are swept in a few seconds, with less than a tenth of a core.
    private static let sweepPause: Int64 = 2_000_000

    /// Begins a purge of `urls`, which are not empty.
    /// - Parameters:
    ///   - softening: how the responses become stale; `nil`: they are removed.
    ///   - completion: called on the loop with the number of responses removed or made stale; with `nil` if the program
    ///     ended before the walk.
    func begin(_ urls: PurgedURLs, softening: Softening? = nil, completion: @escaping (Int?) -> Void) {
        shared.invalidateFetches(where: PurgeIndex([urls]).contains)
        begun += 1
        let caller = LoopBound(completion, on: control)
        let purges = LoopBound(self, on: control)
        // On the loop already: only the loop ends a purge.
        let waiter = Waiter<Int>(on: InlineQueue.shared) { caller.value(try? $0.get()) }
        _ = operations.enqueue(begun, waiter: waiter) { [begun] in
            Purge(number: begun, urls: urls, softening: softening, purges: purges)
        }
    }

    /// Whether responses that purges of tags have removed may still be counted.
    var isSweeping: Bool { walk.isSweeping }

    /// Begins to free the responses that purges of tags have removed.
    func sweep() {
        walk.sweep()
        if !isWalking { goOn() }
    }

    /// Ends all purges, which have then removed a part of their responses.
    func cancelAll() { operations.cancelAll() }

    fileprivate func begin(_ purge: Purge, _ completion: Completion<Int>) {
        walk.add(purge.urls, softening: purge.softening, as: purge.number, in: shared.store)
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
        let pause = walk.hasNoPurges ? Self.sweepPause : rests ? Self.rest : 0
        control.schedule(after: pause) { [weak self] in self?.step() }
    }

    private func step() {
        // The loop's own clock stands still during an iteration.
        let begun = ContinuousClock.now
        let wasSweeping = walk.isSweeping
        var isNoted = false
        let ended = walk.step(through: shared.store) { key, softening in
            if let softening { return shared.store.soften(key, by: softening) }
            // For fetches that began during the walk and that no longer have an operation that could be marked.
            if !isNoted { shared.variations.invalidateAll() }
            isNoted = true
            return shared.drop(key, keepsNotes: false, except: nil)
        }
        if wasSweeping, !walk.isSweeping { shared.tags.collect() }
        for purge in ended { completions.removeValue(forKey: purge.number)?.finish(.success(purge.purged)) }
        worked += begun.duration(to: .now)
        goOn()
    }
}

/// One purge.
private struct Purge: Work {
    let number: Int
    let urls: PurgedURLs
    let softening: Softening?
    let purges: LoopBound<Purges>

    // No limit delays a purge, so it begins on its caller's stack.
    func begin(_ completion: Completion<Int>) { purges.value.begin(self, completion) }
    func stop() { purges.value.stop(self) }
}
