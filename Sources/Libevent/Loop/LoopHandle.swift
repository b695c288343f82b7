import Bytes
import CLibevent
import Glibc
import Synchronization

/// A loop as other threads see it: its identity and its mailbox, which is the only way into the loop.
///
/// A job for which `post` returned true runs exactly once, on the loop's thread, unless the loop is dropped without
/// being finished. Jobs of one thread run in the order in which they were posted. One batch costs one wake-up, however
/// many jobs it holds. The mailbox has no bound of its own. Instead every poster keeps to one outstanding post per
/// object (a notice per body, a completion per waiter), so the limits on these objects bound the mailbox too.
public final class LoopHandle: Sendable {
    /// A job that another thread gives the loop. It runs on the loop's thread and must not block.
    public typealias Job = @Sendable () -> Void

    /// open ─beginClosing→ closing ─takeLastBatch→ closed
    private enum Phase {
        case open
        /// No new job is taken, except one that releases a loop-bound object.
        case closing
        case closed
    }

    /// A job in a list. A bare closure would get an allocated wrapper for each list that holds it.
    struct Parcel {
        let job: Job
    }

    private struct Mail {
        var jobs: [Parcel] = []
        var phase = Phase.open
    }

    private enum Receipt { case first, queued, refused }

    private let mail = Guarded(Mail())
    /// Whether the loop's own thread posted into the empty mailbox. Only that thread touches this flag; it is atomic to
    /// be visible after a loop has been handed to the thread that runs it.
    private let holdsOwnPosts = Atomic(false)
    private let stopRequested = Atomic(false)
    /// The `pthread_t` of the loop's thread; 0 before the thread runs and after it ended.
    private let owner = Atomic<UInt>(0)
    let wakeUp: Descriptor

    init() throws(SystemError) {
        let number = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard number >= 0 else { throw .last(.eventfd) }
        wakeUp = Descriptor(adopting: number)
    }

    /// Whether the caller runs on the loop's thread.
    public var isCurrent: Bool { owner.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// Runs `job` on the loop, in the next batch, never inside this call, even if posted from a batch. Any thread.
    /// - Returns: false if the loop has ended; `job` and its captured objects are then dropped on the caller's thread.
    @discardableResult
    public func post(_ job: @escaping Job) -> Bool { deliver(job, whileClosing: false) }

    /// As `post`, for callers that need not know whether the loop has ended.
    public func enqueue(_ job: @escaping Job) { deliver(job, whileClosing: false) }

    /// Makes the loop's `run` return after its current iteration. If the loop is not running, its next `run` returns at
    /// once. Any thread.
    public func stop() {
        stopRequested.store(true, ordering: .releasing)
        if !isCurrent { ring() }
    }

    /// Posts a job that releases a loop-bound object on the loop. Accepted also while the loop is closing.
    func bringHome(_ job: @escaping Job) { deliver(job, whileClosing: true) }

    @discardableResult
    private func deliver(_ job: @escaping Job, whileClosing: Bool) -> Bool {
        let receipt = mail.withLock { mail -> Receipt in
            switch mail.phase {
            case .open: break
            case .closing: guard whileClosing else { return .refused }
            case .closed: return .refused
            }
            mail.jobs.append(Parcel(job: job))
            return mail.jobs.count == 1 ? .first : .queued
        }
        switch receipt {
        case .first: if isCurrent { holdsOwnPosts.store(true, ordering: .relaxed) } else { ring() }
        case .queued: break // The thread that posted the first job has woken the loop.
        case .refused: return false
        }
        return true
    }

    /// The watch is edge-triggered, so that the counter need not be read; it overflows only after 2⁶⁴ rings.
    private func ring() { _ = eventfd_write(wakeUp.rawValue, 1) }
}

extension LoopHandle: Hashable {
    public static func == (left: LoopHandle, right: LoopHandle) -> Bool { left === right }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The loop's side, for its thread only.
extension LoopHandle {
    func claim() { owner.store(UInt(pthread_self()), ordering: .relaxed) }
    func disown() { owner.store(0, ordering: .relaxed) }

    /// Whether a batch waits that only the loop's own thread posted, so that no wake-up will come for it.
    var hasOwnPosts: Bool { holdsOwnPosts.load(ordering: .relaxed) }
    var mustStop: Bool { stopRequested.load(ordering: .acquiring) }
    func forgetStop() { stopRequested.store(false, ordering: .relaxed) }

    /// Swaps the posted jobs into the empty `batch`, whose capacity is reused.
    func takeBatch(_ batch: inout [Parcel]) {
        holdsOwnPosts.store(false, ordering: .relaxed)
        mail.withLock { swap(&$0.jobs, &batch) }
    }

    /// From here on `post` returns false.
    func beginClosing() {
        mail.withLock { if $0.phase == .open { $0.phase = .closing } }
    }

    /// Moves the remaining jobs into the empty `batch`. If there are none, closes the mailbox for good and returns
    /// false.
    func takeLastBatch(_ batch: inout [Parcel]) -> Bool {
        mail.withLock { mail in
            swap(&mail.jobs, &batch)
            if batch.isEmpty { mail.phase = .closed }
        }
        return !batch.isEmpty
    }
}
