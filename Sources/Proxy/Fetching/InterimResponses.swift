import Bytes
import Coalescing

/// The 1xx responses of one fetch, for everybody who joined it, in order; who joins later gets those that came before
/// (RFC 9110 §15.2, RFC 8297). The leader is told by its fetch.
struct InterimResponses: ~Copyable, Sendable {
    // Neither is private, because Swift 6.3.1 breaks in debug builds where `FetchOperation` needs their metadata.
    struct Observer: Sendable {
        let queue: any CallbackQueue
        let tell: @Sendable (ByteSlice) -> Void
    }

    struct State: Sendable {
        var responses: [ByteSlice] = []
        var observers: [UInt64: Observer] = [:]
        var lastID: UInt64 = 0
        var hasEnded = false
    }

    private let state = Guarded(State())

    /// `tell` is called on `queue` with each response as it is to be sent, those already there first.
    /// - Returns: what `leave` takes.
    func observe(on queue: any CallbackQueue, _ tell: @escaping @Sendable (ByteSlice) -> Void) -> UInt64 {
        state.withLock { state in
            guard !state.hasEnded else { return 0 }
            state.lastID += 1
            state.observers[state.lastID] = Observer(queue: queue, tell: tell)
            // Under the lock, or one that comes now could overtake these; a loop's mailbox calls nobody from inside.
            let missed = state.responses
            if !missed.isEmpty { queue.enqueue { for interim in missed { tell(interim) } } }
            return state.lastID
        }
    }

    /// Whoever left is told nothing more, and is forgotten.
    func leave(_ id: UInt64) {
        state.withLock { state in _ = state.observers.removeValue(forKey: id) }
    }

    func append(_ head: ByteSlice) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            state.responses.append(head)
            for observer in state.observers.values { observer.queue.enqueue { observer.tell(head) } }
        }
    }

    /// The final response is there: nobody is told anything more.
    func end() {
        let former = state.withLock { state -> State in
            let former = state
            state = State()
            state.hasEnded = true
            return former
        }
        // Released outside the lock.
        _ = former
    }
}
