import Bytes
import Libevent

/// What a connection knows of the exchange that it is leased to, from its beginning on.
struct Lease {
    enum Response: Equatable {
        case awaited
        /// Bytes of it are here.
        case begun
        /// The final head was taken.
        case inBody
    }

    enum Reading {
        case on
        /// `refused`: a piece of the body, to be offered again.
        case paused(refused: ByteSlice?)
        /// Goes on after a pause with what was read before it. Only another read would show whether the origin sent
        /// more, or closed, meanwhile: a response that ends now leaves no connection to be used again.
        case resuming
    }

    /// Whether the connection carried another exchange before.
    var isReused = false
    /// When it began, in nanoseconds of the loop's clock.
    var began: Int64 = 0
    /// For how many nanoseconds the connection had been idle before.
    var idleBefore: Int64 = 0
    /// Whether the connection is looked at once more before the request goes out, which cannot be sent twice.
    var looksFirst = false
    /// When reading was first paused, on the loop's clock: all of the response may have been here then.
    var paused: Int64?
    /// When all of the request had been sent, on the same clock; `nil`: not yet, or sending failed.
    var sent: Int64?

    /// Bytes of the request's head.
    var headLength = 0
    /// Bytes of the request's head that are still to be sent.
    var headLeft = 0
    /// `nil` for a request without content, once all of it is out, and once sending has failed.
    var outgoing: OutgoingContent?
    /// Whether the client was told to wait with more of it.
    var contentIsHeldBack = false
    /// Why sending stopped before its end; the connection is not used again.
    var sendFailure: SystemError?

    /// Whether the response asks for credentials that hold for the connection: an answer to them may come on it that is
    /// for one client alone.
    var isForOneClient = false

    var response = Response.awaited
    /// How long the origin may be silent in its response, in nanoseconds; `nil`: as long as anywhere.
    var allowedSilence: Int64?
    var reading = Reading.on

    /// Whether nothing of the request went out yet.
    var isUnsent: Bool { headLeft == headLength && headLength > 0 }

    var isSent: Bool { headLeft == 0 && outgoing?.isSent ?? true }

    /// Whether something waits to be sent.
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
