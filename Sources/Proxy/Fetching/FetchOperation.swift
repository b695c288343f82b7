import Coalescing
import Libevent
import Synchronization
import Upstream

/// A fetch as all loops see it: the `CoalescibleOperation` that waiters join. The work itself is a `Fetch`, which belongs to the loop
/// of the client that led.
final class FetchOperation: CoalescibleOperation<FetchedResponse> {
    /// In the access log and `/status`: one number in all the lines of one fetch.
    nonisolated let number: UInt64
    nonisolated let key: FetchKey
    /// Interim responses so far, and who is told of them.
    nonisolated let interims = InterimResponses()
    /// The fetch, for its own loop only.
    nonisolated let work: LoopOwned<Fetch>

    nonisolated init(number: UInt64, key: FetchKey, work: consuming LoopOwned<Fetch>) {
        self.number = number
        self.key = key
        self.work = work
        super.init()
    }

    nonisolated override var identifier: any Hashable & Sendable { key }

    nonisolated override func execute() {
        // Nothing is reported from inside `begin`, so it needs no turn of the loop.
        if work.handle.isCurrent { return work.value.begin(for: self) }
        work.handle.post { [self] in work.value.begin(for: self) }
    }

    nonisolated override func cancelWork() {
        work.handle.post { [self] in work.value.cancel() }
    }
}
