import Bytes
import Coalescing
import Libevent

/// What a transaction keeps while it waits: until when, and what has come for it before its turn.
///
/// Held by its transaction. Only what calls nobody changes it in place; the rest consumes a copy and gives the new value,
/// so that no access is checked at run time (see `LazyDeadline`).
struct Wait {
    var deadline = LazyDeadline<Void>()
    private var result: Result<FetchedResponse, OperationError>?
    /// A crowd keeps those of its members.
    private var interims: [ByteSlice] = []

    var hasInterims: Bool { !interims.isEmpty }

    /// Keeps the result and drops the deadline: the wait was not in vain, however late the turn comes.
    mutating func received(_ result: consuming Result<FetchedResponse, OperationError>) {
        deadline.clear()
        self.result = result
    }

    /// Keeps one more interim response, behind those that came before.
    consuming func keeping(_ interim: ByteSlice) -> Self {
        interims.append(interim)
        return self
    }

    /// `nil` while there is none.
    mutating func takeResult() -> Result<FetchedResponse, OperationError>? { result.take() }

    /// Takes the interim responses, in the order in which they came.
    mutating func takeInterims() -> [ByteSlice] {
        let due = interims
        interims = []
        return due
    }

    /// Without what has come, which is for nobody.
    consuming func forgetting() -> Self {
        deadline.clear()
        result = nil
        interims = []
        return self
    }
}
