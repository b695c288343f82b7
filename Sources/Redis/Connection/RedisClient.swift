package import Libevent
package import TLS

/// The connection of one loop to one engine, made again whenever it ends. Commands that cannot be sent fail at once:
/// nobody waits for a connection.
///
/// Confined to its loop. The owner calls `stop` before it drops the client: completions would not be called otherwise.
///
/// ```
/// idle ─start→ resolving ─address→ connecting ─ready→ ready
///                 ↑  └─none──┐         └─ended──┐       └─ended─┐
///                 └─time is up─ waiting ←───────┴───────────────┘
/// any ─stop→ stopped
/// ```
///
/// Beside that, a `Breaker` decides about commands. While it is open, the client sends a `PING` each second, and one
/// when a connection is ready.
package final class RedisClient {
    private enum State {
        case idle
        case resolving(NameLookup)
        case connecting(RedisConnection)
        case ready(RedisConnection)
        case waiting(Timer)
        case stopped
    }

    /// A change of the connection or of the breaker.
    package enum Event: Sendable {
        /// Commands can be sent. The engine tells of no key that was read before.
        case ready
        /// The connection has ended, and with it the engine's memory of the keys that were read.
        case lost(RedisConnectionEnd)
        /// Another attempt to connect has failed.
        case notConnected(RedisConnectionEnd)
        /// Too many commands failed or were late in a row: none is sent until a probe is answered.
        case breakerOpened
        case breakerClosed
        /// The server is no node of the cluster any more, and nothing more is told of it.
        case dropped(wasReady: Bool)
    }

    /// The client's state, for `status`.
    package enum Condition: String, Sendable {
        case idle, connecting, ready, waiting, stopped
        case breakerOpen = "breaker-open"
    }

    /// The engine's address.
    package let address: RedisAddress
    private let settings: RedisSettings
    private let library: RedisLibrary?
    /// `nil`: in the clear.
    private let tls: ServerTLS?
    private let loop: EventLoop
    private let resolver: Resolver
    private let onPush: ([RESPValue]) -> Void
    private let onEvent: (Event) -> Void

    private var state = State.idle
    private var breaker: Breaker
    private var probeTimer: Timer?
    private var pauses: PauseSequence
    /// The attempts to connect since a connection was ready. Each tries the next address of the name.
    private var attempts = 0
    private var random = SystemRandomNumberGenerator()
    /// Why the latest connection ended, or the latest attempt failed; `nil`: none did.
    package private(set) var latestEnd: RedisConnectionEnd?

    /// A client that does nothing before `start`.
    /// - Parameters:
    ///   - library: the functions that the commands call; `nil`: none.
    ///   - tls: one of `loop`; needed if the address is secure.
    ///   - resolver: one of `loop`.
    ///   - onPush: called for each push message with its values, the kind first; never inside a method of the client.
    ///   - onEvent: called for each event; inside `stop` not at all.
    package init(
        _ address: RedisAddress, _ settings: RedisSettings = RedisSettings(), library: RedisLibrary? = nil,
        tls: TLSConnector? = nil, on loop: EventLoop, resolver: Resolver,
        onPush: @escaping ([RESPValue]) -> Void = { _ in }, onEvent: @escaping (Event) -> Void = { _ in }
    ) {
        precondition(tls != nil || !address.isSecure, "an engine with TLS must not be spoken to in the clear")
        self.address = address
        self.tls = address.isSecure ? tls?.server(at: address.host) : nil
        self.settings = settings
        self.library = library
        self.loop = loop
        self.resolver = resolver
        self.onPush = onPush
        self.onEvent = onEvent
        breaker = Breaker(mostFailures: settings.breakerFailures)
        pauses = PauseSequence(shortest: settings.shortestPause, longest: settings.longestPause)
    }

    // MARK: Commands

    /// Whether a command would be sent now. On the loop's thread.
    package var isAvailable: Bool {
        if case .ready = state { breaker.isClosed } else { false }
    }

    /// The client's state, for `status`. On the loop's thread.
    package var condition: Condition {
        switch state {
        case .idle: .idle
        case .resolving, .connecting: .connecting
        case .ready: breaker.isClosed ? .ready : .breakerOpen
        case .waiting: .waiting
        case .stopped: .stopped
        }
    }

    /// The TLS of the present connection; `nil` in the clear, or without one.
    var stream: TLSStream? {
        switch state {
        case .connecting(let connection), .ready(let connection): connection.stream
        case .idle, .resolving, .waiting, .stopped: nil
        }
    }

    /// Sends `command`. On the loop's thread.
    /// - Parameters:
    ///   - deadline: when the reply is late, in nanoseconds of the loop's clock; `nil`: after the timeout of the
    ///     settings.
    ///   - completion: called exactly once, never inside this call; inside `stop`, if that comes first.
    package func send(
        _ command: RedisCommand, until deadline: Int64? = nil, _ completion: @escaping (RedisReply) -> Void
    ) {
        let why: RedisReply.Unavailability?
        if case .ready(let connection) = state {
            why =
                breaker.isClosed
                ? connection.send(command, until: deadline ?? loop.now + settings.timeout, completion) : .breakerOpen
        } else {
            why = .notConnected
        }
        // Never on the caller's stack: the caller does not expect an outcome before this method returns.
        if let why { loop.atIterationEnd { completion(.unavailable(why)) } }
    }

    // MARK: Life

    /// Begins to connect. On the loop's thread; a second call does nothing.
    package func start() {
        guard case .idle = state else { return }
        resolve()
    }

    /// Ends the connection for good. The completions of commands without a reply are called before this returns. On the
    /// loop's thread; a second call does nothing.
    package func stop() {
        let former = state
        state = .stopped
        probeTimer?.cancel()
        switch former {
        case .idle, .stopped: break
        case .resolving(let lookup): lookup.cancel()
        case .waiting(let timer): timer.cancel()
        case .connecting(let connection), .ready(let connection): connection.end(.stopped)
        }
    }

    private func resolve() {
        if let target = address.literal { return connect(to: target) }
        guard case .tcp(let host, let port) = address.location else { return }
        state = .resolving(
            resolver.resolve(host, port: port) { [weak self] answer in
                guard let self, case .resolving = state else { return }
                switch answer {
                case .success(let found): connect(to: found.addresses[attempts % found.addresses.count])
                case .failure(let error): notConnected(.noAddress(error))
                }
            })
    }

    private func connect(to target: SocketAddress) {
        do throws(SystemError) {
            state = .connecting(
                try RedisConnection(to: target, of: address, settings, library, tls, on: loop, owner: self))
        } catch {
            notConnected(.notConnected(error))
        }
    }

    /// Never on the caller's stack: this may be `start`, whose caller has not stored the client yet.
    private func notConnected(_ why: RedisConnectionEnd) {
        wait()
        latestEnd = why
        loop.atIterationEnd { [weak self] in
            guard let self, case .waiting = state else { return }
            onEvent(.notConnected(why))
        }
    }

    private func wait() {
        attempts += 1
        let pause = pauses.pause(using: &random)
        state = .waiting(
            loop.schedule(after: pause) { [weak self] in
                guard let self, case .waiting = state else { return }
                resolve()
            })
    }

    // MARK: The breaker

    private func openBreaker() {
        probeLater()
        onEvent(.breakerOpened)
    }

    private func probeLater() {
        probeTimer?.cancel()
        probeTimer = loop.schedule(after: settings.probeInterval) { [weak self] in self?.probe() }
    }

    private func probe() {
        guard case .ready(let connection) = state, breaker.beginProbe() else { return }
        connection.sendOwn(RedisCommand("PING"), until: loop.now + settings.timeout) { [weak self] in
            self?.probeEnded($0)
        }
    }

    private func probeEnded(_ reply: RedisReply) {
        let isSuccess: Bool
        switch reply {
        case .value: isSuccess = true
        case .unavailable, .late: isSuccess = false
        case .failed(let failure): isSuccess = !failure.countsForBreaker
        }
        breaker.probeEnded(isSuccess: isSuccess)
        if case .stopped = state { return }
        if isSuccess { onEvent(.breakerClosed) } else { probeLater() }
    }
}

extension RedisClient: RedisConnectionOwner {
    func connectionIsReady() {
        guard case .connecting(let connection) = state else { return }
        state = .ready(connection)
        attempts = 0
        pauses.reset()
        onEvent(.ready)
        probe()
    }

    func received(push message: [RESPValue]) { onPush(message) }

    func commandEnded(_ reply: RedisReply, isSlow: Bool) {
        if case .stopped = state { return }
        switch reply {
        case .unavailable: break
        // A patient command says nothing of an engine that is too slow for the others.
        case .value where isSlow: break
        case .value: breaker.succeeded()
        case .failed(let failure) where !failure.countsForBreaker: if !isSlow { breaker.succeeded() }
        case .late, .failed: if breaker.failed() { openBreaker() }
        }
    }

    func connectionEnded(_ why: RedisConnectionEnd) {
        switch state {
        case .connecting:
            latestEnd = why
            wait()
            onEvent(.notConnected(why))
        case .ready:
            latestEnd = why
            wait()
            onEvent(.lost(why))
        case .idle, .resolving, .waiting, .stopped: break
        }
    }
}
