import Bytes
import Coalescing
import Libevent

/// Who waits for a fetch on one loop: a transaction, or a crowd of them. A base class for the same reason as
/// `DeadlineTarget`.
class FetchWaiter: DeadlineTarget {
    /// A 1xx, as it goes to the client.
    func received(interim: ByteSlice) {}
    /// Once.
    func received(_ result: Result<FetchedResponse, OperationError>) {}
}
