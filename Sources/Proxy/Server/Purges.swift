import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage

/// The purges in progress that need a walk of the store. Each is an operation; all of them share one walk (`PurgeWalk`),
/// one step in each iteration of the control loop, so that the loop does other work in between.
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
/// Owned by the server, confined to the control loop.
final class Purges {
    /// How many purges share the walk. The index of all their URLs is made anew each time that one begins or ends, which
    /// takes some milliseconds for as many purges of `AdminSettings.maxPurges` URLs.
    private static let mostAtOnce = 64

    private let shared: SharedState
    private let control: EventLoop
    private let operations: OperationQueueManager<Never>
    private var walk = PurgeWalk()
    /// The operations that take part in the walk, by their numbers there.
    private var walking: [Int: PurgeOperation] = [:]
    /// Whether the next step is scheduled.
    private var isWalking = false

    init(_ shared: SharedState, on control: EventLoop) {
        self.shared = shared
        self.control = control
        var settings = OperationQueueManager<Never>.Settings()
        settings.maxConcurrent = Self.mostAtOnce
        operations = OperationQueueManager(settings: settings)
    }

    /// Begins a purge of `urls`, which are not empty.
    /// - Parameter completion: called on the loop with the number of responses removed; with `nil` if the program ended
    ///   before the walk.
    func begin(_ urls: PurgedURLs, completion: @escaping (Int?) -> Void) {
        shared.invalidateFetches(where: PurgeIndex([urls]).contains)
        let caller = LoopBound(completion, on: control)
        let operation = PurgeOperation(urls, by: LoopBound(self, on: control))
        let waiter = Waiter<Int>(on: InlineQueue.shared) { result in caller.value(try? result.get()) }
        if case .refused = operations.enqueueAlone(operation, waiter: waiter) { completion(nil) }
    }

    /// Ends all purges, which have then removed a part of their responses.
    func cancelAll() { operations.cancelAll() }

    fileprivate func started(_ operation: PurgeOperation) {
        walking[walk.add(operation.urls, in: shared.store)] = operation
        if !isWalking { goOn() }
    }

    fileprivate func cancelled(_ operation: PurgeOperation) {
        guard let number = walking.first(where: { $0.value === operation })?.key else { return }
        walking[number] = nil
        walk.remove(number)
    }

    private func goOn() {
        isWalking = !walk.isEmpty
        if isWalking { control.schedule(after: 0) { [weak self] in self?.step() } }
    }

    private func step() {
        let ended = walk.step(through: shared.store) { shared.drop($0, keepsNotes: false, except: nil) }
        for purge in ended { walking.removeValue(forKey: purge.number)?.finish(.success(purge.dropped)) }
        goOn()
    }
}

/// One purge that takes part in the walk.
private final class PurgeOperation: CoalescibleOperation<Int>, @unchecked Sendable {
    let urls: PurgedURLs
    private let purges: LoopBound<Purges>

    init(_ urls: PurgedURLs, by purges: LoopBound<Purges>) {
        self.urls = urls
        self.purges = purges
        super.init()
    }

    override func execute() { purges.value.started(self) }
    override func cancelWork() { purges.value.cancelled(self) }
}
