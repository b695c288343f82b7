import Bytes
import Coalescing

/// The 1xx responses of one fetch, for everybody who waits for it, in order; who joins later gets those that came before
/// (RFC 9110 §15.2, RFC 8297).
final class InterimResponses: Sendable {
    private struct Observer: Sendable {
        let queue: any CallbackQueue
        let tell: @Sendable (ByteSlice) -> Void
    }

    private struct State: Sendable {
        var responses: [ByteSlice] = []
        var observers: [Observer] = []
    }

    private let state = Guarded(State())

    /// `tell` is called on `queue` with each response as it is to be sent, those already there first.
    func observe(on queue: any CallbackQueue, _ tell: @escaping @Sendable (ByteSlice) -> Void) {
        let missed = state.withLock { state in
            state.observers.append(Observer(queue: queue, tell: tell))
            return state.responses
        }
        guard !missed.isEmpty else { return }
        queue.enqueue { for response in missed { tell(response) } }
    }

    func append(_ response: ByteSlice) {
        let observers = state.withLock { state in
            state.responses.append(response)
            return state.observers
        }
        for observer in observers { observer.queue.enqueue { observer.tell(response) } }
    }

    /// The final response is there: nobody is told anything more.
    func end() {
        state.withLock { $0 = State() }
    }
}
