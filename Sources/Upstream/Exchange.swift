package import Bytes
import Libevent
import Telemetry

/// One request and its response. An exchange finds a server and gets a connection, and gets one more if that connection
/// is closed before it brings a byte.
///
/// Owned by the caller (a fetch), which is also its handler. Confined to one loop.
///
/// ```
/// new ─start→ resolving ─addresses→ connecting ─connected→ exchanging ─complete→ ended
///                ↑  └─────────idle connection────────────────↗    │ └─101→ ended (upgraded)
///                └──next server, or closed before a response──────┘
/// resolving ─next server→ resolving
/// connecting ─next server→ resolving
/// connecting ─full Unix socket→ waitingForRoom ─after a moment→ connecting
/// any ─error→ failing ─the handler is told→ ended        any ─cancel→ ended
/// ```
package final class Exchange {
    enum State {
        case new, resolving, connecting, waitingForRoom, exchanging, failing, ended

        fileprivate func leads(to next: State) -> Bool {
            switch self {
            case .new: next == .resolving || next == .ended
            case .resolving: next == .resolving || next == .connecting || next == .failing || next == .ended
            case .connecting:
                next == .resolving || next == .waitingForRoom || next == .exchanging || next == .failing
                    || next == .ended
            case .waitingForRoom: next == .connecting || next == .failing || next == .ended
            case .exchanging: next == .resolving || next == .failing || next == .ended
            case .failing: next == .ended
            case .ended: false
            }
        }
    }

    /// The request to send.
    package let request: UpstreamRequest
    /// The address, as text, of the server asked last, from the first attempt to connect until the response has ended;
    /// for logs.
    package var addressText: ByteSlice { connection?.addressText ?? race?.addressText ?? lastAddress ?? .empty }

    /// The interval, in nanoseconds, at which a full Unix socket is tried again: a hundredth of the usual connect
    /// timeout, and little work for hundreds of waiting exchanges.
    private static let roomInterval: Int64 = 50_000_000

    // Not public: run-time checks of exclusive access are omitted only for properties that no other module can reach.
    /// The value of `addressText` while there is no connection.
    private var lastAddress: ByteSlice?
    /// Content that arrived before the connection was established.
    private var early: OutgoingContent?
    /// Content that may have to be sent again (`Attempts`), until a response arrives.
    private var kept: OutgoingContent?

    private let pool: UpstreamPool
    /// The client connection's own connections, if this exchange's connection is, or becomes, one of them.
    let owner: BoundConnections?
    /// Exchange and handler hold each other until the handler or the connection lets go. A weak reference would make
    /// every access to the handler slow. A variable that is cleared would cost a retain at each call.
    private let handler: any ExchangeHandler
    private var state = State.new
    private var connection: UpstreamConnection?
    private var serverIndex = 0
    /// When this exchange was chosen to try the server, which had been left alone; `nil` if it was not chosen, or after
    /// a response or a failure of the server.
    private var tryBegan: Int64?
    /// The address whose turn it is among the addresses of that server; `nil` if there is no choice.
    private var turn: ServerAddresses.Turn?
    /// The connection attempts, while connecting.
    private var race: AddressRace?
    /// Until when a full Unix socket is tried again, in nanoseconds of the loop's clock; `nil` while other servers are
    /// left to ask.
    private var waitsForRoomUntil: Int64?
    private var attempts: Attempts
    private var isReused = false

    /// Must be called on the loop of `pool`. The exchange does nothing before `start`.
    /// - Parameters:
    ///   - owner: an idle connection of this owner is used first, and the connection that is used belongs to the owner
    ///     from then on; `nil`: the connection belongs to no client connection.
    ///   - early: content that is here already. Only the exchange adds to it from now on.
    package init(
        _ request: UpstreamRequest, pool: UpstreamPool, handler: any ExchangeHandler, owner: BoundConnections? = nil,
        early: OutgoingContent? = nil
    ) {
        self.request = request
        self.pool = pool
        self.handler = handler
        self.owner = owner
        self.early = early
        let keepsContent = early?.isEnded == true && request.repeatsContent && pool.settings.retriesDeadConnection
        attempts = Attempts(request, pool.settings, keepsContent: keepsContent)
        guard keepsContent else { return }
        early?.keep()
        kept = early
    }

    /// Begins. The handler is not called from inside this call.
    package func start() {
        precondition(state == .new, "an exchange starts once")
        chooseServer()
    }

    /// Ends the exchange without another call of the handler. Closes a connection in use.
    package func cancel() {
        guard state != .ended else { return }
        enter(.ended)
        endRace()
        connection?.abandonExchange()
        connection = nil
        leaveUndecided()
    }

    /// The only way into a state.
    private func enter(_ next: State) {
        assert(state.leads(to: next), "\(state) does not lead to \(next)")
        state = next
    }

    // MARK: Content to the origin

    /// Sends a piece of content. The piece is held while there is no connection, or while the connection is slow.
    /// - Returns: false if enough content is held: send no more until `exchangeTakesContent`.
    package func send(_ content: Span<UInt8>) -> Bool {
        guard state != .ended else { return true }
        if let connection, state == .exchanging { return connection.send(content) }
        let early = earlyContent()
        early.append(content)
        return early.count < OutgoingContent.mostEarly
    }

    /// The content is complete. `trailers` are field lines without the last CRLF; only chunked content has them.
    package func endContent(trailers: ByteSlice? = nil) {
        guard state != .ended else { return }
        if let connection, state == .exchanging {
            connection.endContent(trailers: trailers)
        } else {
            earlyContent().end(trailers: trailers)
        }
    }

    /// The buffer of content that arrives before the connection; made for the first piece.
    private func earlyContent() -> OutgoingContent {
        let content = early ?? OutgoingContent(request.content)
        early = content
        return content
    }

    /// Whether all of the request is here and is kept.
    var isHeld: Bool { request.isHeld(keepsContent: kept != nil) }

    // MARK: The response

    /// Resumes reading after `takenAndFull` or `refused`. A refused piece is offered again before this returns.
    package func resume() { connection?.resumeReading() }

    /// To be called from inside `exchange(_:received:)`: allows the origin to send no byte of its response for so many
    /// nanoseconds, if that is more than the upstream's `no-progress-timeout`.
    package func allowSilence(_ nanoseconds: Int64) { connection?.allowSilence(nanoseconds) }

    // MARK: Finding a connection

    private func chooseServer() {
        enter(.resolving)
        // Before the next server is chosen, which may be the same one.
        leaveUndecided()
        if attempts.mayUseIdle, let own = owner?.takeIdle(of: pool) {
            serverIndex = own.server
            enter(.connecting)
            connection = own
            return begin(on: own, isReused: true)
        }
        let pick = pool.nextServer(besides: attempts.triedServers)
        (serverIndex, tryBegan) = (pick.server, pick.tryBegan)
        turn = pool.nextAddress(of: serverIndex)
        if let idle = takeIdle() {
            enter(.connecting)
            connection = idle
            return begin(on: idle, isReused: true)
        }
        pool.resolve(server: serverIndex) { [weak self] result in self?.resolved(result) }
    }

    private func takeIdle() -> UpstreamConnection? {
        attempts.mayUseIdle
            ? pool.takeIdle(server: serverIndex, at: turn?.address, mayRepeat: attempts.mayRepeat) : nil
    }

    private func resolved(_ result: Result<[SocketAddress], UpstreamError>) {
        guard state == .resolving else { return }
        switch result {
        case .success(let found):
            enter(.connecting)
            connect(to: inOrder(found))
        case .failure(let error):
            serverFailed(error)
        }
    }

    private func inOrder(_ found: [SocketAddress]) -> [SocketAddress] {
        guard found.count > 1 else { return found }
        // The name may have new addresses, or its first ones.
        if turn.map({ !found.contains($0.address) }) ?? true {
            leaveTurnUndecided()
            turn = pool.nextAddress(of: serverIndex)
        }
        return turn.map { pool.addresses(of: serverIndex, from: $0.address) } ?? found
    }

    private func connect(to addresses: [SocketAddress]) {
        let race = AddressRace(to: addresses, ofServer: serverIndex, of: pool, for: self)
        self.race = race
        race.connectToNext()
    }

    /// Called by a connection that was established, or could not be.
    func connected(_ connection: UpstreamConnection, _ error: UpstreamError?) {
        guard state == .connecting, let race else { return }
        race.connected(connection, error)
    }

    /// Called by the race.
    func raceEnded(_ end: AddressRace.End) {
        endRace()
        switch end {
        case .won(let connection):
            self.connection = connection
            begin(on: connection, isReused: false)
        case .lost(let error): serverFailed(error)
        // This is not the server's fault.
        case .shortage(let error): cannotConnect(error)
        case .queueFull(let address): waitForRoom(at: address)
        }
    }

    private func endRace() {
        race?.stop()
        lastAddress = race?.addressText ?? lastAddress
        race = nil
    }

    /// The queue of connections that the server has yet to accept is full. For a TCP port, the kernel would try again
    /// by itself; for a Unix socket, this program must try again.
    private func waitForRoom(at address: SocketAddress) {
        let error = UpstreamError(.connectTimeout, .queueFull, detail: "\(address): its queue stayed full")
        // Not counted as a failure: the server is busy, and may be the only one that works.
        guard let end = waitsForRoomUntil else { return goOn(after: .queueIsFull, error) }
        guard pool.loop.now < end else { return cannotConnect(error) }
        enter(.waitingForRoom)
        pool.loop.schedule(after: Self.roomInterval) { [weak self] in
            guard let self, state == .waitingForRoom else { return }
            enter(.connecting)
            // Another exchange may have ended meanwhile, and left its connection idle.
            guard let idle = takeIdle() else { return connect(to: [address]) }
            connection = idle
            begin(on: idle, isReused: true)
        }
    }

    /// Notes the failure of one of the server's several addresses. Does nothing if the server has only one.
    func noteFailure(
        _ error: UpstreamError, at address: SocketAddress, isCertain: Bool = true, isTold: Bool = true
    ) {
        guard turn != nil else { return }
        if turn?.address == address { turn?.tryBegan = nil }
        pool.failed(server: serverIndex, at: address, isCertain: isCertain, isTold ? error : nil)
    }

    private func begin(on connection: UpstreamConnection, isReused: Bool) {
        enter(.exchanging)
        self.isReused = isReused
        connection.begin(self, isReused: isReused, mayRepeat: attempts.mayRepeat, early: early.take())
    }

    private func loseConnection() {
        lastAddress = addressText
        connection = nil
    }

    /// Ends a try of the server, if one is still undecided, without a verdict.
    private func leaveUndecided() {
        if let began = tryBegan.take() { pool.undecided(server: serverIndex, tryBegan: began) }
        leaveTurnUndecided()
    }

    private func leaveTurnUndecided() {
        if let turn = turn.take() { pool.undecided(server: serverIndex, turn) }
    }

    private func noteFailure(_ error: UpstreamError) {
        tryBegan = nil
        pool.failed(server: serverIndex, error)
    }

    private func noteSuccess() {
        tryBegan = nil
        pool.succeeded(server: serverIndex)
        guard turn != nil, let connection else { return }
        turn?.tryBegan = nil
        pool.succeeded(server: serverIndex, at: connection.address)
    }

    /// No connection to this server could be established.
    private func serverFailed(_ error: UpstreamError) {
        noteFailure(error)
        pool.upstreamMetrics.add(.failures(error.failure))
        goOn(after: .notConnected, error)
    }

    private func goOn(after ending: Attempts.Ending, _ error: UpstreamError) {
        // Changed in a copy: a change in place would cost every access to the property a check at run time.
        var attempts = attempts
        let next = attempts.next(after: ending, at: serverIndex, hasOtherAddresses: turn != nil)
        self.attempts = attempts
        guard next != .giveUp else { return end(with: error) }
        switch ending {
        case .notConnected, .queueIsFull: break
        case .idleWasDead, .closed, .failed: pool.upstreamMetrics.add(.retries)
        }
        if next == .waitForRoom { waitsForRoomUntil = pool.loop.now + pool.timeouts.connect }
        chooseServer()
    }

    private func cannotConnect(_ error: UpstreamError) {
        pool.upstreamMetrics.add(.failures(error.failure))
        end(with: error)
    }

    // MARK: From the connection

    func received(interim head: borrowing ReceivedHead) {
        handler.exchange(self, interim: head)
    }

    func received(final head: borrowing ReceivedHead) {
        noteSuccess()
        kept = nil
        handler.exchange(self, received: head)
    }

    func received(body: Span<UInt8>) -> BodyIntake {
        handler.exchange(self, received: body)
    }

    func takesContent() { handler.exchangeTakesContent(self) }

    func completed(trailers: ByteSlice?) {
        guard state == .exchanging else { return }
        enter(.ended)
        connection = nil
        handler.exchange(self, endedWith: trailers)
    }

    func upgraded(head: borrowing ReceivedHead) {
        enter(.ended)
        noteSuccess()
        guard let connection = connection.take() else { return }
        handler.exchange(self, upgradedTo: connection, head: head)
    }

    /// - Parameters:
    ///   - isUnsent: whether the server took no byte of the request.
    ///   - content: the content that was given to the connection and not sent.
    func failed(_ error: UpstreamError, isUnsent: Bool, content: OutgoingContent?) {
        guard state == .exchanging else { return }
        let address = connection?.address
        loseConnection()
        pool.upstreamMetrics.add(.failures(error.failure))
        let ending: Attempts.Ending =
            if !error.closedBeforeResponse { .failed } else if isReused { .idleWasDead(isUnsent: isUnsent) } else {
                .closed
            }
        // A server that closes an idle connection just when it is reused is not at fault.
        if case .idleWasDead = ending {
            early = content
        } else {
            noteFailure(error)
            if let address { noteFailure(error, at: address, isCertain: false) }
        }
        if let kept {
            kept.rewind()
            early = kept
        }
        goOn(after: ending, error)
    }

    private func end(with error: UpstreamError) {
        guard state != .failing, state != .ended else { return }
        enter(.failing)
        leaveUndecided()
        var error = error
        error.server = addressText
        // The handler must not be called on the stack of `start`.
        pool.loop.handle.post { [bound = LoopBound((self, error), on: pool.loop)] in
            let (exchange, error) = bound.value
            guard exchange.state == .failing else { return }
            exchange.enter(.ended)
            exchange.handler.exchange(exchange, failedWith: error)
        }
    }
}
