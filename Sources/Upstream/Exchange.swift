package import Bytes
import HTTPSemantics
import Libevent
import Telemetry

/// One request and its response. An exchange finds a place and gets a connection, and another one if the first brings no
/// response of use (`Attempts`).
///
/// Owned by the caller (a fetch), which is also its handler. Confined to one loop.
///
/// ```
/// new ─start→ resolving ─addresses→ connecting ─connected→ exchanging ─complete→ ended
///                ↑  └─────────idle connection────────────────↗    │ └─101→ ended (upgraded)
///                └──next place, or closed before a response───────┘
/// resolving ─next place, or the name's addresses are places now→ resolving
/// resolving ─no place is left→ failing
/// connecting ─next place→ resolving
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
    /// The place that was asked last; `nil` before the first.
    package var place: Place? { target?.place }

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
    /// The place that is asked.
    private var target: PlaceConnections?
    /// When this exchange was chosen as the probe of that place; `nil` if it was not chosen, or after a verdict.
    private var probe: Int64?
    /// The place that counts this exchange among its requests in flight, if it counts them.
    private var counted: Place?
    /// The place to ask first; `nil` once one was chosen.
    private var preferred: Place?
    /// The hash of the request's key, under `Balance.hash`.
    private let key: UInt64
    /// The last failure to connect, for the log.
    private var lastFailure: String?
    /// Whether a retry out of the budget is in flight.
    private var holdsRetry = false
    /// Whether the handler was given a head: the client may have seen a part of the response.
    private var hasHead = false
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
    ///   - key: the key of the request, if the pool chooses by it (`UpstreamPool.choosesByKey`).
    ///   - preferred: the place to ask if it is in use; `nil`: whichever the pool chooses.
    package init(
        _ request: UpstreamRequest, pool: UpstreamPool, handler: any ExchangeHandler, owner: BoundConnections? = nil,
        early: OutgoingContent? = nil, key: ByteSlice = .empty, preferring preferred: Place? = nil
    ) {
        self.key = pool.choosesByKey ? Rendezvous.hash(key.span) : 0
        self.preferred = preferred
        self.request = request
        self.pool = pool
        self.handler = handler
        self.owner = owner
        self.early = early
        let mayKeep = pool.settings.retriesDeadConnection || pool.settings.retry.attempts > 0
        let keepsContent = early?.isEnded == true && request.repeatsContent && mayKeep
        attempts = Attempts(request, pool.settings, keepsContent: keepsContent)
        guard keepsContent else { return }
        early?.keep()
        kept = early
    }

    /// Begins. The handler is not called from inside this call.
    package func start() {
        precondition(state == .new, "an exchange starts once")
        pool.countRequest()
        choosePlace()
    }

    /// Ends the exchange without another call of the handler. Closes a connection in use.
    package func cancel() {
        guard state != .ended else { return }
        enter(.ended)
        endRace()
        connection?.abandonExchange()
        connection = nil
        leavePlace()
        endRetry()
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

    private func choosePlace() {
        enter(.resolving)
        // Before the next place is chosen, which may be the same one.
        leavePlace()
        if attempts.mayUseIdle, let own = owner?.takeIdle(of: pool) {
            go(to: own.home, probe: nil)
            return use(idle: own)
        }
        switch pool.pick(
            for: request, besides: attempts.tried, isRetry: attempts.isRetry, key: key, preferring: preferred.take())
        {
        case .none(let next):
            noPlace(next)
        case .place(let place, let probe):
            go(to: place, probe: probe)
            if let idle = takeIdle() { return use(idle: idle) }
            guard place.isNamed else { return connect(to: place) }
            pool.resolve(server: place.server) { [weak self] result in self?.resolved(result) }
        }
    }

    private func go(to place: PlaceConnections, probe: Int64?) {
        target = place
        self.probe = probe
        guard pool.countsRequests else { return }
        place.place.begin()
        counted = place.place
    }

    /// No place is left for the request.
    private func noPlace(_ next: Int64?) {
        var attempts = attempts
        let waits = attempts.waitsForFull()
        self.attempts = attempts
        if waits {
            waitsForRoomUntil = pool.loop.now + pool.timeouts.connect
            return choosePlace()
        }
        let last = lastFailure.map { ", the last one: \($0)" } ?? ""
        var error = UpstreamError(.unavailable, .noServer, detail: "no server takes requests\(last)")
        error.retryAfter = pool.countUnserved(next)
        cannotConnect(error)
    }

    private func takeIdle() -> UpstreamConnection? {
        guard attempts.mayUseIdle, let target else { return nil }
        return pool.takeIdle(at: target, mayRepeat: attempts.mayRepeat)
    }

    private func use(idle: UpstreamConnection) {
        enter(.connecting)
        connection = idle
        begin(on: idle, isReused: true)
    }

    private func resolved(_ result: Result<[SocketAddress], UpstreamError>) {
        guard state == .resolving, let target else { return }
        switch result {
        case .success:
            // The name may have new addresses, or its first ones, which are places of their own.
            if target.isListed, !target.place.addresses.isEmpty { connect(to: target) } else { choosePlace() }
        case .failure(let error):
            noteFailure(error)
            placeFailed(error)
        }
    }

    private func connect(to place: PlaceConnections) {
        enter(.connecting)
        connect(toAny: pool.candidates(from: place, besides: attempts.tried))
    }

    private func connect(toAny addresses: [AddressRace.Candidate]) {
        let race = AddressRace(to: addresses, of: pool, for: self)
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
        let tried = race?.tried ?? []
        endRace()
        switch end {
        case .won(let connection):
            if connection.home !== target {
                leavePlace()
                go(to: connection.home, probe: nil)
            }
            self.connection = connection
            begin(on: connection, isReused: false)
        case .lost(let error):
            // The failures of places with one address were noted one by one.
            if let target, target.place.addresses.count != 1 { noteFailure(error) }
            var attempts = attempts
            attempts.noteTried(tried)
            self.attempts = attempts
            placeFailed(error)
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
            if let idle = takeIdle() {
                connection = idle
                begin(on: idle, isReused: true)
            } else if let target {
                connect(toAny: [AddressRace.Candidate(home: target, address: address)])
            }
        }
    }

    /// Called by the race: an address takes no connection. A server with others leaves it alone at once.
    func noteFailure(_ error: UpstreamError, at place: PlaceConnections, isTold: Bool = true) {
        // The two addresses of one place are two ways to it.
        guard place.place.addresses.count == 1 else { return }
        pool.failed(
            place, .error(error), isCertain: pool.hasOthers(besides: place), isTold: isTold,
            probe: place === target ? probe.take() : nil)
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

    /// Ends a probe of the place, if one is still undecided, without a verdict, and is in flight there no more.
    private func leavePlace() {
        if let began = probe.take(), let target { pool.undecided(target, probe: began) }
        if let place = counted.take() { place.end() }
    }

    private func endRetry() {
        guard holdsRetry else { return }
        holdsRetry = false
        pool.retryEnded()
    }

    private func noteFailure(_ error: UpstreamError) {
        if let target { pool.failed(target, .error(error), probe: probe.take()) }
    }

    private func noteSuccess() {
        guard let target else { return }
        pool.answered(target, probe: probe.take())
        guard let counted, let connection else { return }
        let now = pool.loop.now
        counted.noteLatency(now - connection.lease.began, at: now)
    }

    /// No connection to this place could be established.
    private func placeFailed(_ error: UpstreamError) {
        pool.upstreamMetrics.add(.failures(error.failure))
        if !pool.isLone { lastFailure = "\(error)" }
        goOn(after: .notConnected, error)
    }

    private func goOn(after ending: Attempts.Ending, _ error: UpstreamError) {
        let next = next(after: ending)
        guard next != .giveUp else { return end(with: error) }
        if next == .waitForRoom { waitsForRoomUntil = pool.loop.now + pool.timeouts.connect }
        choosePlace()
    }

    private func next(after ending: Attempts.Ending) -> Attempts.Next {
        guard let target else { return .giveUp }
        // Changed in a copy: a change in place would cost every access to the property a check at run time.
        var attempts = attempts
        let next = attempts.next(after: ending, at: target.place.number, isLone: pool.isLone) { tried in
            guard pool.beginRetry(besides: tried) else { return false }
            endRetry()
            holdsRetry = true
            return true
        }
        self.attempts = attempts
        switch ending {
        case .notConnected, .queueIsFull: break
        case .idleWasDead, .closed, .noHead, .status, .brokenOff:
            if next != .giveUp { pool.upstreamMetrics.add(.retries) }
        }
        return next
    }

    private func cannotConnect(_ error: UpstreamError) {
        pool.upstreamMetrics.add(.failures(error.failure))
        end(with: error)
    }

    // MARK: From the connection

    func received(interim head: borrowing ReceivedHead) {
        hasHead = true
        handler.exchange(self, interim: head)
    }

    func received(final head: borrowing ReceivedHead) {
        if head.head.status.isServerError, pool.isFailure(head.head.status.code) {
            if isGivenUp(head) { return }
        } else {
            noteSuccess()
        }
        hasHead = true
        kept = nil
        handler.exchange(self, received: head)
    }

    /// Notes a response that counts as a failure.
    /// - Returns: whether the response is not read further, since another place is asked instead.
    @inline(never)
    private func isGivenUp(_ head: borrowing ReceivedHead) -> Bool {
        let wait = head.fields.retryAfter(at: pool.loop.wallClockSeconds) ?? 0
        if let target {
            pool.failed(
                target, .status(head.head.status.code), probe: probe.take(), least: Int64(wait) * 1_000_000_000)
        }
        guard !hasHead, next(after: .status) == .nextPlace else { return false }
        let given = connection
        loseConnection()
        given?.abandonExchange()
        sendKeptAgain()
        choosePlace()
        return true
    }

    /// Makes the kept content, if there is any, go out with the next attempt.
    private func sendKeptAgain() {
        guard let kept else { return }
        kept.rewind()
        early = kept
    }

    func received(body: Span<UInt8>) -> BodyIntake {
        handler.exchange(self, received: body)
    }

    func takesContent() { handler.exchangeTakesContent(self) }

    func completed(trailers: ByteSlice?) {
        guard state == .exchanging else { return }
        enter(.ended)
        connection = nil
        leavePlace()
        endRetry()
        handler.exchange(self, endedWith: trailers)
    }

    func upgraded(head: borrowing ReceivedHead) {
        enter(.ended)
        noteSuccess()
        leavePlace()
        endRetry()
        guard let connection = connection.take() else { return }
        handler.exchange(self, upgradedTo: connection, head: head)
    }

    /// - Parameters:
    ///   - isUnsent: whether the server took no byte of the request.
    ///   - content: the content that was given to the connection and not sent.
    func failed(_ error: UpstreamError, isUnsent: Bool, content: OutgoingContent?) {
        guard state == .exchanging else { return }
        loseConnection()
        pool.upstreamMetrics.add(.failures(error.failure))
        let ending = ending(error, isUnsent: isUnsent)
        // A server that closes an idle connection just when it is reused is not at fault.
        if case .idleWasDead = ending { early = content } else { noteFailure(error) }
        sendKeptAgain()
        goOn(after: ending, error)
    }

    private func ending(_ error: UpstreamError, isUnsent: Bool) -> Attempts.Ending {
        if error.closedBeforeResponse { return isReused ? .idleWasDead(isUnsent: isUnsent) : .closed }
        guard !hasHead else { return .brokenOff }
        return switch error.failure {
        case .sendTimeout, .headTimeout: .noHead(.timeout)
        case .send, .closed, .head, .headTooLarge: .noHead(.error)
        // Without a head there is no body; a shortage of this proxy is the same at each place.
        case .unavailable, .resolve, .connect, .connectTimeout, .body, .bodyTimeout: .brokenOff
        }
    }

    private func end(with error: UpstreamError) {
        guard state != .failing, state != .ended else { return }
        enter(.failing)
        leavePlace()
        endRetry()
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
