import Coalescing
import HTTPSemantics

/// A bound that a request has met: there is no fetch for it, or it has waited for one as long as it may.
enum Bound {
    /// There is no memory for a fetch.
    case memory
    /// It was not let in. `byOperation`: by a fetch that has all the waiters it may have; otherwise by the origin's
    /// queue.
    case refusal(Refusal, byOperation: Bool)
    /// It has waited for too long. `hasJoined`: for a fetch that was not made for it.
    case wait(hasJoined: Bool)

    /// The word for `Cache-Status` and the log.
    var detail: StaticString {
        switch self {
        case .memory: "memory-full"
        case .refusal(let refusal, _): refusal.name
        case .wait: "wait-timeout"
        }
    }

    /// Whether a fetch of its own avoids it. Nothing avoids full memory or a full queue.
    var isOfOneFetch: Bool {
        switch self {
        case .memory: false
        case .refusal(_, let byOperation): byOperation
        case .wait(let hasJoined): hasJoined
        }
    }

    /// Whether the operator hears of it as such (`Notices.overloaded`), not with each request that meets it.
    var isToldOnceForAll: Bool {
        switch self {
        case .memory: true
        case .refusal, .wait: false
        }
    }

    /// What it says of the origin: asked once more, that would keep the request waiting as long again.
    var originFailure: OriginFailure? {
        switch self {
        case .memory, .refusal: nil
        case .wait: .timeout
        }
    }
}
