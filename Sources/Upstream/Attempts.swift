import HTTPSemantics

/// Whether a request goes out again after an attempt that brought no response, and where to.
///
/// | the attempt ended so | the request goes out again |
/// | --- | --- |
/// | no connection to the server | to the next server, until all were asked |
/// | the queue of the server's Unix socket is full | to the next server; once all were asked, the first such one is waited for |
/// | idle connection dead, nothing of the request taken | on a new connection, whatever the method: no server has heard of it |
/// | idle connection answering 408 as it closes | the same, if the request has no content, or that is kept: the server had stopped waiting for one (RFC 9110 §15.5.9). Content that is on its way cannot be sent again: the 408 is the response, and the client may repeat it all |
/// | idle connection dead before a response | on a new connection, once, if it may be sent twice (RFC 9110 §9.2.2, RFC 9112 §9.3.1): the end alone does not tell whether it was acted on |
/// | new connection closed before a response | to the next server, or the next address of the only one, once, if it may be sent twice and is safe (RFC 9110 §9.2.1): the first may have begun on it |
/// | anything else | not at all |
///
/// Content is kept, and goes out again with its request, where all of it was here before the exchange began and the
/// request is safe (`QUERY`, RFC 10008 §2). Other requests with content are not sent twice.
///
/// A value, without I/O. Of one exchange.
struct Attempts {
    /// How an attempt ended.
    enum Ending: Equatable {
        /// No address of the server took a connection.
        case notConnected
        /// The queue of connections that it has still to accept is full.
        case queueIsFull
        /// The connection had been idle, and was closed before a byte of a response. `isUnsent`: the server took nothing
        /// of the request.
        case idleWasDead(isUnsent: Bool)
        /// The connection was new, and was closed before a byte of a response.
        case closed
        /// There was part of a response, or none in time.
        case failed
    }

    enum Next: Equatable {
        case again, nextServer, giveUp
        /// Wait for the one server that is not among `askedInVain`.
        case waitForRoom
    }

    /// The servers that were asked in vain, by their places in the settings: none of them is asked again.
    private(set) var askedInVain: [Int] = []
    private let serverCount: Int
    /// The first whose queue was full, until it is waited for.
    private var fullServer: Int?
    /// Whether it may be sent a second time; never a third.
    private(set) var mayRepeat: Bool
    private let isSafe: Bool
    /// `retry-dead-connection`.
    private let retries: Bool
    /// Whether an idle connection will do. After a dead one there may be more of them.
    private(set) var mayUseIdle = true

    // Inlined, so that neither is copied.
    /// - Parameter keepsContent: whether the request's content is kept until there is a response.
    @inline(__always)
    init(_ request: UpstreamRequest, _ settings: UpstreamSettings, keepsContent: Bool = false) {
        serverCount = settings.servers.count
        retries = settings.retriesDeadConnection
        mayRepeat = retries && request.mayBeSentAgain(keepsContent: keepsContent)
        isSafe = request.method.isSafe
    }

    /// - Parameters:
    ///   - server: the one that was asked.
    ///   - hasOtherAddresses: that server, beside the one that was connected to.
    mutating func next(after ending: Ending, at server: Int, hasOtherAddresses: Bool = false) -> Next {
        switch ending {
        case .notConnected:
            return nextServer(after: server)
        case .queueIsFull:
            fullServer = fullServer ?? server
            return nextServer(after: server)
        case .idleWasDead(isUnsent: true) where retries:
            mayUseIdle = false
            return .again
        case .idleWasDead:
            guard mayRepeat else { return .giveUp }
            (mayRepeat, mayUseIdle) = (false, false)
            return .again
        case .closed:
            guard mayRepeat, isSafe else { return .giveUp }
            (mayRepeat, mayUseIdle) = (false, false)
            return serverCount == 1 && hasOtherAddresses ? .again : nextServer(after: server)
        case .failed:
            return .giveUp
        }
    }

    private mutating func nextServer(after server: Int) -> Next {
        askedInVain.append(server)
        guard askedInVain.count == serverCount else { return .nextServer }
        guard let full = fullServer.take() else { return .giveUp }
        askedInVain.removeAll { $0 == full }
        return .waitForRoom
    }
}
