import Bytes
import Coalescing
import Libevent

/// The waiters of one fetch on other loops than its own, at most one for each loop, and the fetch's 1xx responses, in
/// order: a request that joins later gets the earlier ones as well (RFC 9110 §15.2, RFC 8297).
struct WaitersElsewhere: ~Copyable, Sendable {
    /// Not private, because Swift 6.3.1 breaks in debug builds where `FetchOperation` needs its metadata.
    struct State: Sendable {
        var waiters: [LoopBound<FetchWaiter>] = []
        var interims: [ByteSlice] = []
        var hasEnded = false
    }

    private let state = Guarded(State())

    /// The interim responses so far; none once the final response is there.
    var interims: [ByteSlice] { state.withLock { $0.interims } }

    /// The waiter of this loop. Called on the loop.
    func waiter(on loop: LoopHandle) -> FetchWaiter? {
        state.withLock { $0.waiters.first { $0.handle === loop } }?.value
    }

    /// Passes each further interim response to `waiter`, on its loop.
    /// - Returns: the earlier ones. Called on that loop, which takes them before any later one.
    func add(_ waiter: LoopBound<FetchWaiter>) -> [ByteSlice] {
        state.withLock { state in
            state.waiters.append(waiter)
            return state.interims
        }
    }

    /// The waiter, if it is the one of its loop, gets no more calls, and is released. Called on the loop.
    func remove(_ waiter: FetchWaiter, on loop: LoopHandle) {
        // Released outside the lock.
        _ = state.withLock { state -> LoopBound<FetchWaiter>? in
            guard let index = state.waiters.firstIndex(where: { $0.handle === loop && $0.value === waiter }) else {
                return nil
            }
            return state.waiters.remove(at: index)
        }
    }

    func append(_ interim: ByteSlice) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            state.interims.append(interim)
            // Under the lock, so that a waiter which is added next has not missed it; a loop's mailbox calls no waiter
            // from inside.
            for waiter in state.waiters { waiter.handle.enqueue { waiter.value.received(interim: interim) } }
        }
    }

    /// The final response is there: no more interim responses come. The waiters stay, until they have the result.
    func endInterims() {
        // Released outside the lock.
        _ = state.withLock { state -> [ByteSlice] in
            state.hasEnded = true
            var former: [ByteSlice] = []
            swap(&former, &state.interims)
            return former
        }
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
