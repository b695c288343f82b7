import Coalescing
import Telemetry

extension Fetch {
    /// How it ends: once, by `end(_:)`, and so for everybody who has a part in it. What those get who still wait for a
    /// response, and those who read one; what is kept of it; and what becomes of the exchange:
    ///
    /// | ending | they wait | they read | is kept | exchange |
    /// | --- | --- | --- | --- | --- |
    /// | `complete` | – | to the end | what may be stored has been | goes on to its end |
    /// | `stoodIn` | – | a stored response | that, as it was | is cut |
    /// | `truncated` | – | what came, then a cut | as a part, if it may be | is cut |
    /// | `failed` | the error | – | nothing | is over, or is cut |
    /// | `released` | they look up again | – | nothing | is cut |
    /// | `upgraded` | the leader alone: the connection | – | nothing | is over |
    /// | `cancelled` | the leader alone: that | what came, then a cut | as a part, if it may be | is cut |
    ///
    /// Nobody waits once a response was delivered. When the operation is cancelled it has told its waiters itself: only
    /// the leader of a fetch that is for it alone, who is none, is left.
    enum Ending {
        /// What was delivered is whole: its body has ended, or it was in the store and the origin confirmed it.
        case complete
        /// What was delivered was in the store, and stands in for what the origin does or fails to do.
        case stoodIn
        /// The body of what was delivered ends short.
        /// - Parameters: why, and whether what came before may be kept.
        case truncated(FetchedResponse.Shortfall, keepsPart: Bool)
        /// There is no response.
        case failed(any Error)
        /// The response is not for those who wait.
        case released
        /// The connection is the client's.
        case upgraded
        /// Nobody wants the result any more: the operation was cancelled.
        case cancelled

        /// What those get who still wait; `nil` where nobody does.
        var error: OperationError? {
            switch self {
            case .complete, .stoodIn, .truncated: nil
            case .failed(let error): OperationError(error)
            case .released: .released
            case .upgraded, .cancelled: .cancelled
            }
        }

        var cutsExchange: Bool {
            switch self {
            // A 304 has no content: its exchange ends by itself, and the connection is used again.
            case .complete: false
            // It ended with the 101, and has let go of the connection.
            case .upgraded: false
            case .stoodIn, .truncated, .failed, .released, .cancelled: true
            }
        }

        var breaksBody: Bool {
            switch self {
            case .truncated, .cancelled: true
            case .complete, .stoodIn, .failed, .released, .upgraded: false
            }
        }

        var mayKeepPart: Bool {
            switch self {
            case .truncated(_, let keepsPart): keepsPart
            case .cancelled: true
            case .complete, .stoodIn, .failed, .released, .upgraded: false
            }
        }
    }
}
