import Bytes
import Coalescing
import Libevent

/// The 1xx responses of one fetch, for everybody who joined it, in order; who joins later gets those that came before
/// (RFC 9110 §15.2, RFC 8297). The leader is told by its fetch.
struct InterimResponses: ~Copyable, Sendable {
    /// Not private, because Swift 6.3.1 breaks in debug builds where `FetchOperation` needs its metadata.
    struct State: Sendable {
        var responses: [ByteSlice] = []
        var listeners = SlotList<LoopBound<FetchWaiter>>()
        var hasEnded = false
    }

    private let state = Guarded(State())

    /// Tells `listener` each response, on its loop, beginning with those already there.
    /// - Returns: what `leave` takes; `.none` when nothing will come.
    func hear(_ listener: LoopBound<FetchWaiter>) -> SlotToken {
        state.withLock { state in
            guard !state.hasEnded else { return .none }
            // Under the lock, or a new one could overtake these; a loop's mailbox calls nobody from inside.
            let missed = state.responses
            if !missed.isEmpty {
                listener.handle.enqueue { for interim in missed { listener.value.received(interim: interim) } }
            }
            return state.listeners.append(listener)
        }
    }

    /// The listener is told nothing more, and is let go of.
    func leave(_ token: SlotToken) {
        // Released outside the lock.
        _ = state.withLock { $0.listeners.remove(token) }
    }

    func append(_ head: ByteSlice) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            state.responses.append(head)
            // One job for each loop: its mailbox is not for thousands.
            for (handle, listeners) in Dictionary(grouping: state.listeners.elements, by: \.handle) {
                handle.enqueue { for listener in listeners { listener.value.received(interim: head) } }
            }
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

extension Collection<ByteSlice> {
    /// All of them one after another, for one write.
    func inOne() -> ByteSlice {
        if let first, count == 1 { return first }
        let buffer = ByteBuffer(capacity: reduce(0) { $0 + $1.count })
        for slice in self { buffer.append(slice) }
        return buffer.copied()
    }
}
