import Bytes
import Coalescing
import Libevent

/// The data that a transaction keeps while it waits: its deadline, and the results that came before its turn.
///
/// Held by its transaction. Only methods that call no other code change it in place; the others consume a copy and
/// return the new value, so that no access is checked at run time (see `LazyDeadline`).
struct Wait {
    var deadline = LazyDeadline<Void>()
    private var result: Result<FetchedResponse, OperationError>?
    /// A crowd keeps the interim responses of its members.
    private var interims: [ByteSlice] = []

    var hasInterims: Bool { !interims.isEmpty }

    /// Keeps the result and drops the deadline: the wait succeeded, however late the turn comes.
    mutating func received(_ result: consuming Result<FetchedResponse, OperationError>) {
        deadline.clear()
        self.result = result
    }

    /// Keeps one more interim response, after the earlier ones.
    consuming func keeping(_ interim: ByteSlice) -> Self {
        interims.append(interim)
        return self
    }

    /// Takes the result; `nil` while there is none.
    mutating func takeResult() -> Result<FetchedResponse, OperationError>? { result.take() }

    /// Takes the interim responses, in the order in which they came.
    mutating func takeInterims() -> [ByteSlice] {
        let due = interims
        interims = []
        return due
    }

    /// Drops the deadline, the result and the interim responses, which no client will get.
    consuming func forgetting() -> Self {
        deadline.clear()
        result = nil
        interims = []
        return self
    }
}
