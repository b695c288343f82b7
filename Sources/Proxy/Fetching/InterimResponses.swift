import Bytes
import Coalescing
import Libevent

/// The 1xx responses of one fetch, in order, for all requests that joined it; a request that joins later gets the
/// earlier ones as well (RFC 9110 §15.2, RFC 8297). The fetch itself tells its leader.
struct InterimResponses: ~Copyable, Sendable {
    /// Not private, because Swift 6.3.1 breaks in debug builds where `FetchOperation` needs its metadata.
    struct State: Sendable {
        var responses: [ByteSlice] = []
        var listeners = SlotList<LoopBound<FetchWaiter>>()
        var hasEnded = false
    }

    private let state = Guarded(State())

    /// Passes each response to `listener`, on the listener's loop, beginning with the earlier ones.
    /// - Returns: the token for `leave`; `.none` if no more responses will come.
    func hear(_ listener: LoopBound<FetchWaiter>) -> SlotToken {
        state.withLock { state in
            guard !state.hasEnded else { return .none }
            // Under the lock, or a new response could overtake these; a loop's mailbox calls no listener from inside.
            let missed = state.responses
            if !missed.isEmpty {
                listener.handle.enqueue { for interim in missed { listener.value.received(interim: interim) } }
            }
            return state.listeners.append(listener)
        }
    }

    /// The listener gets no more calls, and is released.
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

    /// The final response is there: the listeners get no more calls.
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
