import HTTPSemantics

/// Decides whether a request is sent again after an attempt without a response, and to which server.
///
/// | the attempt ended so | the request is sent again |
/// | --- | --- |
/// | no connection to the server | to the next server, until all were asked |
/// | the queue of the server's Unix socket is full | to the next server; once all were asked, it waits for the first server with a full queue |
/// | idle connection dead, nothing of the request taken | on a new connection, with any method: the request reached no server |
/// | idle connection answering 408 as it closes | the same, if the request has no content, or its content is kept: the server had stopped waiting for a request (RFC 9110 §15.5.9). Content that is on its way cannot be sent again: the 408 is the response, and the client may repeat the whole request |
/// | idle connection dead before a response | on a new connection, once, if the request may be sent twice (RFC 9110 §9.2.2, RFC 9112 §9.3.1): the close alone does not tell whether the server acted on the request |
/// | new connection closed before a response | to the next server, or to the next address of the only server, once, if the request may be sent twice and is safe (RFC 9110 §9.2.1): the first server may have begun to act on it |
/// | any other end | not at all. Asking another server after a silent one would double the wait, and the load of what made the first one slow |
///
/// Content is kept, and is sent again with its request, if all of it was here before the exchange began and the request
/// is safe (`QUERY`, RFC 10008 §2). Other requests with content are not sent twice.
///
/// A value without I/O. Each exchange has its own.
struct Attempts {
    /// How an attempt ended.
    enum Ending: Equatable {
        /// No address of the server took a connection.
        case notConnected
        /// The queue of connections that the server has yet to accept is full.
        case queueIsFull
        /// The connection had been idle, and was closed before a byte of a response. `isUnsent`: the server took no
        /// byte of the request.
        case idleWasDead(isUnsent: Bool)
        /// The connection was new, and was closed before a byte of a response.
        case closed
        /// A part of a response arrived, or no response arrived in time.
        case failed
    }

    enum Next: Equatable {
        case again, nextServer, giveUp
        /// Wait for the only server that is not in `triedServers`.
        case waitForRoom
    }

    /// The servers that took no request, as indices into the settings' list: none of them is asked again.
    private(set) var triedServers: [Int] = []
    private let serverCount: Int
    /// The first server whose queue was full, until the exchange waits for it.
    private var fullServer: Int?
    /// Whether the request may be sent a second time. A third time is never allowed.
    private(set) var mayRepeat: Bool
    private let isSafe: Bool
    /// `retry-dead-connection`.
    private let retries: Bool
    /// Whether an idle connection may be used. After one dead idle connection, others may be dead, too.
    private(set) var mayUseIdle = true

    // Inlined, so that neither argument is copied.
    /// - Parameter keepsContent: whether the request's content is kept until a response arrives.
    @inline(__always)
    init(_ request: UpstreamRequest, _ settings: UpstreamSettings, keepsContent: Bool = false) {
        serverCount = settings.servers.count
        retries = settings.retriesDeadConnection
        mayRepeat = retries && request.mayBeSentAgain(keepsContent: keepsContent)
        isSafe = request.method.isSafe
    }

    /// - Parameters:
    ///   - server: the server that was asked.
    ///   - hasOtherAddresses: whether that server has addresses other than the one used.
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
        triedServers.append(server)
        guard triedServers.count == serverCount else { return .nextServer }
        guard let full = fullServer.take() else { return .giveUp }
        triedServers.removeAll { $0 == full }
        return .waitForRoom
    }
}
