import Bytes
import Coalescing
import HTTPSemantics

/// How a fetch ends: once, by `Fetch.end(_:)`, and for all its clients. The ending decides the result of the waiters and
/// of the readers, the bytes that are kept, and the end of the exchange:
///
/// | ending | the waiters get | the readers get | the store keeps | the exchange |
/// | --- | --- | --- | --- | --- |
/// | `complete` | – | the whole body | the response, if it may be stored | goes on to its end |
/// | `stoodIn` | – | a stored response | that response, as it was | is cut |
/// | `truncated` | – | the bytes received, then a cut | a part, if allowed | is cut |
/// | `failed` | the error | – | nothing | is over, or is cut |
/// | `released` | a new look-up | – | nothing | is cut |
/// | `upgraded` | the connection (only the leader waits) | – | nothing | is over |
/// | `cancelled` | the error (only those of this loop) | the bytes received, then a cut | a part, if allowed | is cut |
///
/// There are no waiters once a response was delivered. A cancelled operation has told the waiters of other loops
/// itself.
enum FetchEnding {
    /// The delivered response is whole: its body has ended, or it was in the store and the origin confirmed it.
    case complete
    /// The delivered response is a stored one, used in place of the origin's response or its failure.
    case stoodIn
    /// The body of the delivered response ends short.
    /// - Parameters: the reason, and whether the bytes received may be kept.
    case truncated(FetchedResponse.Shortfall, keepsPart: Bool)
    /// There is no response.
    case failed(any Error)
    /// The waiters cannot use the response.
    case released
    /// The connection to the origin now belongs to the client's tunnel.
    case upgraded
    /// The operation was cancelled: no client wants the result any more.
    case cancelled

    /// The error for the waiters; `nil` if there are none.
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
        // The exchange of a 304, which has no content, ends by itself, and its connection is used again. A 101 has ended
        // its exchange, which has released the connection.
        case .complete, .upgraded: false
        case .stoodIn, .truncated, .failed, .released, .cancelled: true
        }
    }

    /// Whether the origin, or the wait for it, gave no response.
    var isFailure: Bool { if case .failed = self { true } else { false } }

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

/// There was no memory for the content of a response, and no client was sent any of it. A waiter gets the same answer
/// as a request that may not start a fetch at a limit, but no stale response, since the origin has answered.
struct NoMemory: Error {
    /// The server that sent the response.
    let server: ContactedServer
    let status: Status?

    /// - Parameter now: nanoseconds of the loop's clock.
    init(_ fetched: FetchedResponse, at now: Int64) {
        server = ContactedServer(
            address: fetched.server, duration: UInt64(max(0, now - fetched.requestTime.monotonic)))
        status = fetched.originStatus
    }
}

/// The server of an exchange that did not become a response.
struct ContactedServer: Sendable {
    /// The server's address as text; empty when not even that was known.
    let address: ByteSlice
    /// How long the server took, in nanoseconds; `nil` if that is not known yet.
    let duration: UInt64?
}
