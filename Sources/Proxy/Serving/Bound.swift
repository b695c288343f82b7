import Coalescing

/// A bound that a request has met: there is no fetch for it, or it has waited for one as long as it may.
enum Bound {
    /// There is no memory for a fetch.
    case memory
    /// It was not let in: by a fetch that has all the waiters it may have, or by the origin's queue.
    case refusal(Refusal)
    /// It has waited for too long for the slot of a fetch, its own or one that it joined.
    case slot
    /// It has waited for too long for the response of a fetch that it joined.
    case wait(FetchOperation)

    /// The word for `Cache-Status` and the log.
    var detail: StaticString {
        switch self {
        case .memory: "memory-full"
        case .refusal(let refusal): refusal.name
        case .slot, .wait: "wait-timeout"
        }
    }

    /// Whether the operator hears of it as such (`Notices.overloaded`), not with each request that meets it.
    var isToldOnceForAll: Bool {
        switch self {
        case .memory: true
        case .refusal, .slot, .wait: false
        }
    }
}
