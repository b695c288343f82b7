import Coalescing

/// A limit that a request has met: no fetch may start for it, or it has waited for one as long as it may.
enum Bound {
    /// There is no memory for a fetch.
    case memory
    /// A fetch with all the waiters that it may have, or the origin's queue, refused the request.
    case refusal(Refusal)
    /// The request has waited too long for the response of the fetch that it joined; `nil`: for the slot of a fetch,
    /// its own or one that it joined.
    case wait(FetchOperation?)

    /// The word for `Cache-Status` and the log.
    var detail: StaticString {
        switch self {
        case .memory: Recorder.memoryFull
        case .refusal(let refusal): refusal.name
        case .wait: "wait-timeout"
        }
    }
}
