import HTTPSemantics
import Telemetry

/// Decides whether a request is sent again after an attempt without a response, or with one that is no use, and where.
/// `UpstreamPool` chooses the next place; the places that were tried are not asked again.
///
/// | the attempt ended so | the request is sent again |
/// | --- | --- |
/// | no connection to the place | to the next place, until none is left; not if the origin has only one place |
/// | the queue of the server's Unix socket is full | the same; once none is left, it waits for the first server with a full queue |
/// | idle connection dead, nothing of the request taken | on a new connection, with any method: the request reached no server |
/// | idle connection answering 408 as it closes | the same, if the request has no content, or its content is kept: the server had stopped waiting for a request (RFC 9110 §15.5.9). Content that is on its way cannot be sent again: the 408 is the response, and the client may repeat the whole request |
/// | idle connection dead before a response | on a new connection, once, if the request may be sent twice (RFC 9110 §9.2.2, RFC 9112 §9.3.1): the close alone does not tell whether the server acted on the request. Counts as one of `retry.attempts` |
/// | new connection closed, malformed head (`error`); no head in time (`timeout`); a status of `retry.on` | to another place, at most `retry.attempts` times, if the cause is in `retry.on`, the request may be sent twice, such a place is in use, and the budget allows it (`RetryBudget`). The first retry after no head needs no budget if its place was ejected meanwhile: requests in flight there are retried once, however many they are. Otherwise the response is the answer |
/// | any end after a response's head, or after an interim response | not at all: the client has seen a part |
///
/// A probe (`Probe`) is sent once, whatever comes of it.
///
/// Content is kept, and is sent again with its request, if all of it was here before the exchange began and the request
/// is safe (`QUERY`, RFC 10008 §2). Other requests with content are not sent twice.
///
/// A value without I/O. Each exchange has its own.
struct Attempts {
    /// How an attempt ended.
    enum Ending: Equatable {
        /// The place took no connection.
        case notConnected
        /// The queue of connections that the server has yet to accept is full.
        case queueIsFull
        /// The connection had been idle, and was closed before a byte of a response. `isUnsent`: the server took no
        /// byte of the request.
        case idleWasDead(isUnsent: Bool)
        /// The connection was new, and was closed before a byte of a response.
        case closed
        /// The response had no valid head, or none in time.
        case noHead(RetrySettings.Causes)
        /// The response has a status of `retry.on`.
        case status
        /// The client may have seen a part of the response, or another place would not help.
        case brokenOff

        /// The end of a connection that carried the request.
        /// - Parameters:
        ///   - isUnsent: whether the server took no byte of the request.
        ///   - isReused: whether the connection had been idle.
        ///   - hasHead: whether a head was passed on.
        init(_ error: UpstreamError, isUnsent: Bool, isReused: Bool, hasHead: Bool) {
            if error.closedBeforeResponse {
                self = isReused ? .idleWasDead(isUnsent: isUnsent) : .closed
                return
            }
            self =
                switch error.failure {
                case _ where hasHead: .brokenOff
                case .sendTimeout, .headTimeout: .noHead(.timeout)
                case .send, .closed, .head, .headTooLarge: .noHead(.error)
                // Without a head there is no body; a shortage of this proxy is the same at each place.
                case .unavailable, .resolve, .connect, .connectTimeout, .handshake, .body, .bodyTimeout: .brokenOff
                }
        }
    }

    enum Next: Equatable {
        case again, nextPlace, giveUp
        /// Wait for the only place that is not in `tried`.
        case waitForRoom
    }

    /// The numbers of the places that took no request, or that gave no response of use.
    private(set) var tried: [Int] = []
    /// The first place whose queue was full, until the exchange waits for it.
    private var fullPlace: Int?
    /// Whether the request may be sent a second time after an idle connection was dead.
    private(set) var mayRepeat: Bool
    /// How often the request may still be sent to another place although the first has, or may have, got it.
    private var retriesLeft: Int
    private let causes: RetrySettings.Causes
    /// `retry-dead-connection`.
    private let retriesDeadConnection: Bool
    /// Whether an idle connection may be used. After one dead idle connection, others may be dead, too.
    private(set) var mayUseIdle = true
    /// Whether the request is being retried: only a place that is known to be in use is asked.
    private(set) var isRetry = false

    // Inlined, so that neither argument is copied.
    /// - Parameters:
    ///   - keepsContent: whether the request's content is kept until a response arrives.
    ///   - isBound: whether the request goes over a connection that belongs to its client: another server does not know
    ///     its user.
    @inline(__always)
    init(
        _ request: UpstreamRequest, _ settings: UpstreamSettings, keepsContent: Bool = false, isBound: Bool = false
    ) {
        let mayBeSentAgain = request.mayBeSentAgain(keepsContent: keepsContent)
        retriesDeadConnection = settings.retriesDeadConnection
        mayRepeat = retriesDeadConnection && mayBeSentAgain
        retriesLeft = mayBeSentAgain && !isBound ? settings.retry.attempts : 0
        causes = settings.retry.causes
    }

    /// Notes places that were tried beside the one that `next` is told of.
    mutating func noteTried(_ places: [Int]) {
        for place in places where !tried.contains(place) { tried.append(place) }
    }

    /// - Parameters:
    ///   - place: the number of the place that was asked.
    ///   - isLone: whether the origin has no other place.
    ///   - wasEjected: whether the place was ejected after the request was sent to it.
    ///   - takeRetry: takes a retry out of the budget, unless it needs none, if there is a place besides these.
    mutating func next(
        after ending: Ending, at place: Int, isLone: Bool = false, wasEjected: Bool = false,
        takeRetry: (_ besides: [Int], _ needsBudget: Bool) -> Bool
    ) -> Next {
        let needsBudget = isRetry || !wasEjected
        switch ending {
        case .notConnected:
            noteTried([place])
            return isLone ? .giveUp : .nextPlace
        case .queueIsFull:
            fullPlace = fullPlace ?? place
            noteTried([place])
            guard isLone else { return .nextPlace }
            return waitsForFull() ? .waitForRoom : .giveUp
        case .idleWasDead(isUnsent: true) where retriesDeadConnection:
            mayUseIdle = false
            return .again
        case .idleWasDead:
            guard mayRepeat else { return .giveUp }
            (mayRepeat, mayUseIdle) = (false, false)
            retriesLeft -= 1
            return .again
        case .closed:
            guard causes.contains(.error), retry(elsewhereThan: place, { takeRetry($0, needsBudget) }) else {
                return .giveUp
            }
            // The next server may close its idle connections just as well.
            (mayRepeat, mayUseIdle) = (false, false)
            return .nextPlace
        case .noHead(let cause):
            guard causes.contains(cause), retry(elsewhereThan: place, { takeRetry($0, needsBudget) }) else {
                return .giveUp
            }
            return .nextPlace
        case .status:
            return retry(elsewhereThan: place, { takeRetry($0, true) }) ? .nextPlace : .giveUp
        case .brokenOff:
            return .giveUp
        }
    }

    private mutating func retry(elsewhereThan place: Int, _ takeRetry: ([Int]) -> Bool) -> Bool {
        guard retriesLeft > 0, takeRetry(tried + [place]) else { return false }
        retriesLeft -= 1
        noteTried([place])
        isRetry = true
        return true
    }

    /// No place is left. If one had a full queue, `tried` leaves it out from now on.
    mutating func waitsForFull() -> Bool {
        guard let full = fullPlace.take() else { return false }
        tried.removeAll { $0 == full }
        return true
    }
}
