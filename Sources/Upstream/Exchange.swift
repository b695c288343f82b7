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
/// new ─start, probe→ resolving ─addresses→ connecting ─connected→ exchanging ─complete→ ended
///                       ↑  └─an idle connection→ connecting ↗            │ └─101→ ended (upgraded)
///                       └──the next place, or the same one again─────────┘
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
    /// The place that was asked last. May be `nil` if the origin has only one.
    package var place: Place? { asked?.place }

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
    /// The place that is asked, or was asked last, while there is no connection.
    private var target: PlaceConnections?
    /// The place that is asked, or was asked last.
    private var asked: PlaceConnections? { connection?.home ?? target }
    /// `nil` while the origin has one place only.
    private(set) var claims: PlaceClaims?
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
    package init(
        _ request: UpstreamRequest, pool: UpstreamPool, handler: any ExchangeHandler, owner: BoundConnections? = nil,
        early: OutgoingContent? = nil
    ) {
        self.request = request
        self.pool = pool
        self.handler = handler
        self.owner = owner
        self.early = early
        let mayKeep = pool.settings.retriesDeadConnection || pool.settings.retry.attempts > 0
        let keepsContent = early?.isEnded == true && request.repeatsContent && mayKeep
        attempts = Attempts(request, pool.settings, keepsContent: keepsContent, isBound: owner != nil)
        guard keepsContent else { return }
        early?.keep()
        kept = early
    }

    /// The same for a request without content that goes to `preferred` if that place is in use.
    package convenience init(
        _ request: UpstreamRequest, pool: UpstreamPool, handler: any ExchangeHandler, preferring preferred: Place?
    ) {
        self.init(request, pool: pool, handler: handler)
        if let preferred { ownClaims()?.preferred = preferred }
    }

    /// Called before `start` if the pool chooses by the key of the request (`UpstreamPool.choosesByKey`).
    package func choosePlace(by key: ByteSlice) {
        claims = claims ?? PlaceClaims(on: pool)
        claims?.key = Rendezvous.hash(key.span)
    }

    private var isProbe: Bool { claims?.isProbe == true }

    /// The claims, from now on, if the origin has several places.
    private func ownClaims() -> PlaceClaims? {
        if claims == nil, !pool.isLone { claims = PlaceClaims(on: pool) }
        return claims
    }

    /// Begins. The handler is not called from inside this call.
    package func start() {
        precondition(state == .new, "an exchange starts once")
        choosePlace()
    }

    /// Begins, instead of `start`, as the probe of `place` that was claimed at `time`. It asks no other place.
    func probe(_ place: PlaceConnections, claimedAt time: Int64) {
        precondition(state == .new, "an exchange starts once")
        claims = PlaceClaims(on: pool, isProbe: true)
        enter(.resolving)
        ask(place, probe: time)
    }

    /// Ends the exchange without another call of the handler. Closes a connection in use.
    package func cancel() {
        guard state != .ended else { return }
        enter(.ended)
        endRace()
        connection?.abandonExchange()
        leaveConnection()
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
        claims?.leavePlace()
        if attempts.mayUseIdle {
            if let own = owner?.takeIdle(of: pool) {
                ownClaims()?.enter(own.home)
                return use(idle: own)
            }
            // The way of most requests.
            if let idle = pool.takeIdleOfLone(mayRepeat: attempts.mayRepeat) { return use(idle: idle) }
        }
        pickPlace()
    }

    @inline(never)
    private func pickPlace() {
        let pick = pool.pick(
            for: request, besides: attempts.tried, isRetry: attempts.isRetry, key: claims?.key ?? 0,
            preferring: claims?.preferred.take())
        switch pick {
        case .none(let next):
            noPlace(next)
        case .place(let place, let probe):
            ask(place, probe: probe)
        }
    }

    private func ask(_ place: PlaceConnections, probe: Int64?) {
        target = place
        // The only place has no idle connection of use: it was asked for one.
        if !pool.isLone {
            ownClaims()?.enter(place, probe: probe)
            if let idle = takeIdle(at: place) { return use(idle: idle) }
        }
        guard place.isNamed else { return connect(to: place) }
        pool.resolve(server: place.server) { [weak self] result in self?.resolved(result) }
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
        cannotConnect(pool.noPlace(until: next, after: claims?.lastFailure))
    }

    private func takeIdle(at place: PlaceConnections) -> UpstreamConnection? {
        attempts.mayUseIdle && !isProbe ? pool.takeIdle(at: place, mayRepeat: attempts.mayRepeat) : nil
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
            if target.isListed, !target.place.addresses.isEmpty { return connect(to: target) }
            guard !isProbe else { return end(with: UpstreamError(.resolve, detail: "the addresses changed")) }
            choosePlace()
        case .failure(let error):
            noteFailure(error, at: target)
            placeFailed(error)
        }
    }

    private func connect(to place: PlaceConnections) {
        enter(.connecting)
        connect(toAny: pool.candidates(from: place, besides: attempts.tried, isProbe: isProbe))
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
                claims?.leavePlace()
                ownClaims()?.enter(connection.home)
            }
            self.connection = connection
            begin(on: connection, isReused: false)
        case .lost(let error):
            // The failures of places with one address were noted one by one.
            if let target, target.place.addresses.count != 1 { noteFailure(error, at: target) }
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
            guard let self, state == .waitingForRoom, let target else { return }
            enter(.connecting)
            // Another exchange may have ended meanwhile, and left its connection idle.
            if let idle = takeIdle(at: target) {
                connection = idle
                begin(on: idle, isReused: true)
            } else {
                connect(toAny: [AddressRace.Candidate(home: target, address: address)])
            }
        }
    }

    private func begin(on connection: UpstreamConnection, isReused: Bool) {
        enter(.exchanging)
        self.isReused = isReused
        connection.begin(self, isReused: isReused, mayRepeat: attempts.mayRepeat, early: early.take())
    }

    /// The exchange has ended.
    private func leaveConnection() {
        if let claims {
            target = asked
            claims.leavePlace()
        }
        connection = nil
    }

    private func loseConnection() {
        (lastAddress, target) = (addressText, asked)
        connection = nil
    }

    private func noteFailure(_ error: UpstreamError, at place: PlaceConnections) {
        pool.failed(place, .error(error), probe: claims?.takeProbe(of: place))
    }

    private func noteSuccess(on connection: UpstreamConnection) {
        if let claims {
            claims.answered(connection.home, since: connection.lease.began)
        } else if connection.home.place.hasFailed {
            pool.answered(connection.home, probe: nil)
        }
    }

    /// No connection to this place could be established.
    private func placeFailed(_ error: UpstreamError) {
        pool.upstreamMetrics.add(.failures(error.failure))
        ownClaims()?.lastFailure = "\(error)"
        goOn(after: .notConnected, error)
    }

    /// - Parameter began: when the request was given to its connection; `nil`: it was not.
    private func goOn(after ending: Attempts.Ending, _ error: UpstreamError, began: Int64? = nil) {
        let next = next(after: ending, began: began)
        guard next != .giveUp else { return end(with: error) }
        if next == .waitForRoom { waitsForRoomUntil = pool.loop.now + pool.timeouts.connect }
        choosePlace()
    }

    private func next(after ending: Attempts.Ending, began: Int64? = nil) -> Attempts.Next {
        guard let place = asked, !isProbe else { return .giveUp }
        // Changed in a copy: a change in place would cost every access to the property a check at run time.
        var attempts = attempts
        let next = attempts.next(
            after: ending, at: place.place.number, isLone: pool.isLone,
            wasEjected: began.map { place.place.isAway(since: $0) } ?? false
        ) { tried, needsBudget in pool.takeRetry(besides: tried, needsBudget: needsBudget) }
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

    func received(final head: borrowing ReceivedHead, on connection: UpstreamConnection) {
        if head.head.status.code >= RetrySettings.leastStatus, pool.isFailure(head.head.status.code) {
            if isGivenUp(head, on: connection) { return }
        } else {
            noteSuccess(on: connection)
        }
        hasHead = true
        kept = nil
        handler.exchange(self, received: head)
    }

    /// Notes a response that counts as a failure.
    /// - Returns: whether the response is not read further, since another place is asked instead.
    @inline(never)
    private func isGivenUp(_ head: borrowing ReceivedHead, on connection: UpstreamConnection) -> Bool {
        let (place, wait) = (connection.home, head.fields.retryAfter(at: pool.loop.wallClockSeconds) ?? 0)
        pool.failed(
            place, .status(head.head.status.code), probe: claims?.takeProbe(of: place),
            least: PlaceHealth.nanoseconds(ofRetryAfter: wait))
        guard !hasHead, next(after: .status) == .nextPlace else { return false }
        loseConnection()
        connection.abandonExchange()
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
        leaveConnection()
        handler.exchange(self, endedWith: trailers)
    }

    func upgraded(head: borrowing ReceivedHead) {
        enter(.ended)
        guard let connection = connection.take() else { return }
        noteSuccess(on: connection)
        claims?.leavePlace()
        handler.exchange(self, upgradedTo: connection, head: head)
    }

    /// - Parameters:
    ///   - isUnsent: whether the server took no byte of the request.
    ///   - content: the content that was given to the connection and not sent.
    func failed(_ error: UpstreamError, isUnsent: Bool, content: OutgoingContent?) {
        guard state == .exchanging else { return }
        let began = connection?.lease.began
        loseConnection()
        pool.upstreamMetrics.add(.failures(error.failure))
        let ending = Attempts.Ending(error, isUnsent: isUnsent, isReused: isReused, hasHead: hasHead)
        // A server that closes an idle connection just when it is reused is not at fault.
        if case .idleWasDead = ending { early = content } else if let target { noteFailure(error, at: target) }
        sendKeptAgain()
        goOn(after: ending, error, began: began)
    }

    private func end(with error: UpstreamError) {
        guard state != .failing, state != .ended else { return }
        enter(.failing)
        claims?.leavePlace()
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
