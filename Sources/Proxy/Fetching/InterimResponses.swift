import Bytes
import Coalescing

/// The 1xx responses of one fetch, for everybody who waits for it, in order; who joins later gets those that came before
/// (RFC 9110 §15.2, RFC 8297). One that sets a cookie is for the leader alone, as nobody knows yet who may share the response.
final class InterimResponses: Sendable {
    private struct Interim: Sendable {
        let head: ByteSlice
        let isForLeader: Bool
    }

    private struct Observer: Sendable {
        let queue: any CallbackQueue
        let leads: Bool
        let tell: @Sendable (ByteSlice) -> Void
    }

    private struct State: Sendable {
        var responses: [Interim] = []
        var observers: [UInt64: Observer] = [:]
        var lastID: UInt64 = 0
        var hasEnded = false
    }

    private let state = Guarded(State())

    /// `tell` is called on `queue` with each response as it is to be sent, those already there first.
    /// - Returns: what `leave` takes.
    func observe(on queue: any CallbackQueue, leads: Bool, _ tell: @escaping @Sendable (ByteSlice) -> Void) -> UInt64 {
        let (id, missed) = state.withLock { state -> (UInt64, [Interim]) in
            guard !state.hasEnded else { return (0, []) }
            state.lastID += 1
            state.observers[state.lastID] = Observer(queue: queue, leads: leads, tell: tell)
            return (state.lastID, state.responses.filter { leads || !$0.isForLeader })
        }
        if !missed.isEmpty { queue.enqueue { for interim in missed { tell(interim.head) } } }
        return id
    }

    /// Whoever left is told nothing more, and is forgotten.
    func leave(_ id: UInt64) {
        state.withLock { state in _ = state.observers.removeValue(forKey: id) }
    }

    func append(_ head: ByteSlice, isForLeader: Bool) {
        let observers = state.withLock { state -> [Observer] in
            guard !state.hasEnded else { return [] }
            state.responses.append(Interim(head: head, isForLeader: isForLeader))
            return state.observers.values.filter { $0.leads || !isForLeader }
        }
        for observer in observers { observer.queue.enqueue { observer.tell(head) } }
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
