import Bytes
import Libevent

/// The state of a connection for the exchange that it is leased to, from the exchange's beginning.
struct Lease {
    enum Response: Equatable {
        case awaited
        /// Bytes of the response have arrived.
        case begun
        /// The final response's head was passed on.
        case inBody
    }

    enum Reading {
        case on
        /// `refused`: a piece of the body that is to be offered again.
        case paused(refused: ByteSlice?)
        /// After a pause, the bytes read before the pause are processed. Only another read would show whether the
        /// origin sent more bytes, or closed, meanwhile: if the response ends now, the connection is not used again.
        case resuming
    }

    /// Whether the connection carried another exchange before.
    var isReused = false
    /// When the lease began, in nanoseconds of the loop's clock.
    var began: Int64 = 0
    /// For how many nanoseconds the connection was idle before the lease.
    var idleBefore: Int64 = 0
    /// Whether the connection is checked once more before the request is sent, since the request cannot be sent twice.
    var looksFirst = false
    /// When reading was first paused, on the loop's clock: all of the response may have arrived by then.
    var paused: Int64?
    /// When the whole request had been sent, on the same clock; `nil` if it is not sent yet, or sending failed.
    var sent: Int64?

    /// Bytes of the request's head.
    var headLength = 0
    /// Bytes of the request's head that are still to be sent.
    var headLeft = 0
    /// The content to send; `nil` for a request without content, once all of it is sent, and once sending has failed.
    var outgoing: OutgoingContent?
    /// Whether the client was told to send no more content for now.
    var contentIsHeldBack = false
    /// Why sending stopped early; the connection is not used again.
    var sendFailure: SystemError?

    /// Whether the response asks for credentials that authenticate the connection: a later response on this connection
    /// may then be for one client alone.
    var isForOneClient = false

    var response = Response.awaited
    /// How long the origin may send no byte of its response, in nanoseconds; `nil`: the upstream's
    /// `no-progress-timeout`.
    var allowedSilence: Int64?
    var reading = Reading.on

    /// Whether a record with bytes of the request waits in part for the kernel: they count as not sent, but the server
    /// may get them.
    var isEncrypted = false

    /// Whether no byte of the request was sent yet.
    var isUnsent: Bool { headLeft == headLength && headLength > 0 && !isEncrypted }

    var isSent: Bool { headLeft == 0 && outgoing?.isSent ?? true }

    /// Whether bytes wait to be sent.
    var hasMore: Bool { headLeft > 0 || outgoing?.count ?? 0 > 0 }

    var isPaused: Bool {
        switch reading {
        case .paused: true
        case .on, .resuming: false
        }
    }

    var isResuming: Bool {
        switch reading {
        case .resuming: true
        case .on, .paused: false
        }
    }
}
