import CLibevent
import Glibc
import Synchronization

/// A loop as seen from anywhere: its identity, and the mailbox that is the only way into it.
///
/// A job whose `post` answered true runs exactly once, on the loop's thread, unless the loop is dropped without
/// being finished. Jobs of one poster run in the order they were posted. One batch costs one wake-up, however many
/// jobs it holds. The mailbox has no bound of its own: whoever posts keeps to one outstanding post per thing
/// (a notice per body, a completion per waiter), and so the sum is bounded by what is bounded elsewhere.
public final class LoopHandle: Sendable {
    /// Work that another thread gives the loop. It runs on the loop's thread and must not block.
    public typealias Job = @Sendable () -> Void

    /// open ─beginClosing→ closing ─takeLastBatch→ closed
    private enum Phase {
        case open
        /// Nothing new is taken, except loop-bound objects to be released here.
        case closing
        case closed
    }

    /// A job in a list. A closure by itself would get a wrapper, allocated, for each list it goes into.
    struct Parcel {
        let job: Job
    }

    private struct Mail {
        var jobs: [Parcel] = []
        var phase = Phase.open
    }

    private enum Receipt { case first, queued, refused }

    private let mail = Lock(Mail())
    /// Whether the loop's own thread posted into the empty mailbox. Only that thread touches it; it is atomic to be
    /// visible after a loop has been handed to the thread that runs it.
    private let holdsOwnPosts = Atomic(false)
    private let stopRequested = Atomic(false)
    /// The `pthread_t` of the loop's thread, 0 before it runs and after it ended.
    private let owner = Atomic<UInt>(0)
    let wakeUp: Descriptor

    init() throws(SystemError) {
        let number = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard number >= 0 else { throw .last(.eventfd) }
        wakeUp = Descriptor(adopting: number)
    }

    /// Whether the caller runs on the loop's thread.
    public var isCurrent: Bool { owner.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// Runs `job` on the loop, later, never inside this call: in the next batch, also when posted from a batch.
    /// Any thread.
    /// - Returns: false if the loop has ended; then `job` is dropped, with what it holds, on the caller's thread.
    @discardableResult
    public func post(_ job: @escaping Job) -> Bool { deliver(job, whileClosing: false) }

    /// `post` for callers that need not know whether the loop has ended.
    public func enqueue(_ job: @escaping Job) { deliver(job, whileClosing: false) }

    /// Lets the loop's `run` return after its current iteration; a loop that is not running returns at once when run.
    /// Any thread.
    public func stop() {
        stopRequested.store(true, ordering: .releasing)
        if !isCurrent { ring() }
    }

    /// Gives a loop-bound object to the loop to be released there. Taken also while the loop is closing.
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
        case .queued: break // Whoever was first has seen to it.
        case .refused: return false
        }
        return true
    }

    /// Edge-triggered, so that nobody needs to read the counter; it takes 2⁶⁴ rings to overflow.
    private func ring() { _ = eventfd_write(wakeUp.rawValue, 1) }
}

extension LoopHandle: Hashable {
    public static func == (left: LoopHandle, right: LoopHandle) -> Bool { left === right }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The loop's side. All on its thread.
extension LoopHandle {
    func claim() { owner.store(UInt(pthread_self()), ordering: .relaxed) }
    func disown() { owner.store(0, ordering: .relaxed) }

    /// Whether a batch waits for which no bell was rung.
    var hasOwnPosts: Bool { holdsOwnPosts.load(ordering: .relaxed) }
    var mustStop: Bool { stopRequested.load(ordering: .acquiring) }
    func forgetStop() { stopRequested.store(false, ordering: .relaxed) }

    /// Exchanges what has arrived for the empty `batch`, whose capacity is reused.
    func takeBatch(_ batch: inout [Parcel]) {
        holdsOwnPosts.store(false, ordering: .relaxed)
        mail.withLock { swap(&$0.jobs, &batch) }
    }

    /// From here on `post` answers false.
    func beginClosing() {
        mail.withLock { if $0.phase == .open { $0.phase = .closing } }
    }

    /// Takes what is left into the empty `batch`; if there is nothing, closes for good and returns false.
    func takeLastBatch(_ batch: inout [Parcel]) -> Bool {
        mail.withLock { mail in
            swap(&mail.jobs, &batch)
            if batch.isEmpty { mail.phase = .closed }
        }
        return !batch.isEmpty
    }
}
