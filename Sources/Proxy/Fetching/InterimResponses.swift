import Bytes
import Libevent

/// The 1xx responses of one fetch, for everybody who joined it, in order; who joins later gets those that came before
/// (RFC 9110 §15.2, RFC 8297). The leader is told by its fetch.
struct InterimResponses: ~Copyable, Sendable {
    /// Neither is private, because Swift 6.3.1 breaks in debug builds where `FetchOperation` needs their metadata.
    struct Seat: Sendable {
        /// `nil` while the seat is free.
        var listener: LoopBound<FetchWaiter>?
        /// How often it was taken: who left once does not turn out the next.
        var stay: UInt32 = 0
    }

    struct State: Sendable {
        var responses: [ByteSlice] = []
        var seats: [Seat] = []
        var free: [UInt32] = []
        var hasEnded = false
    }

    private let state = Guarded(State())

    /// `listener` is told of each response on its loop, of those already there first.
    /// - Returns: what `leave` takes; 0 when nothing will come.
    func hear(_ listener: LoopBound<FetchWaiter>) -> UInt64 {
        state.withLock { state in
            guard !state.hasEnded else { return 0 }
            // Under the lock, or one that comes now could overtake these; a loop's mailbox calls nobody from inside.
            let missed = state.responses
            if !missed.isEmpty {
                listener.handle.enqueue { for interim in missed { listener.value.received(interim: interim) } }
            }
            let index = state.free.popLast() ?? UInt32(state.seats.count)
            if Int(index) == state.seats.count { state.seats.append(Seat()) }
            state.seats[Int(index)].listener = listener
            state.seats[Int(index)].stay &+= 1
            return UInt64(state.seats[Int(index)].stay) << 32 | UInt64(index)
        }
    }

    /// Whoever left is told nothing more, and is forgotten.
    func leave(_ id: UInt64) {
        let (index, stay) = (UInt32(truncatingIfNeeded: id), UInt32(id >> 32))
        // Released outside the lock.
        _ = state.withLock { state -> LoopBound<FetchWaiter>? in
            guard index < state.seats.count, state.seats[Int(index)].stay == stay,
                  let listener = state.seats[Int(index)].listener.take() else { return nil }
            state.free.append(index)
            return listener
        }
    }

    func append(_ head: ByteSlice) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            state.responses.append(head)
            for seat in state.seats {
                guard let listener = seat.listener else { continue }
                listener.handle.enqueue { listener.value.received(interim: head) }
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
