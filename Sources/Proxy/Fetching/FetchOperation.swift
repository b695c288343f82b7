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
    private nonisolated let fetch: LoopBound<Fetch>

    nonisolated init(number: UInt64, key: FetchKey, fetch: LoopBound<Fetch>) {
        self.number = number
        self.key = key
        self.fetch = fetch
        super.init(identifier: key)
    }

    nonisolated override func execute() {
        fetch.handle.post { [self] in fetch.value.begin(for: self) }
    }

    nonisolated override func cancelWork() {
        fetch.handle.post { [self] in fetch.value.cancel() }
    }

    /// The fetch, on its own loop only.
    nonisolated var work: Fetch { fetch.value }
}
