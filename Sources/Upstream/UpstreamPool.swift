package import Bytes
package import Libevent
package import Telemetry

/// One loop's connections to one origin. The pool chooses the next server and keeps the idle connections.
///
/// Confined to its loop. Idle connections are used last in, first out: the connection used last is the least likely to
/// be dead, and surplus connections grow old and close. A request that cannot be sent twice takes no connection that
/// may be closing (`ServerPatience`). A connection to an address that its server's name no longer has is not used
/// again. The present addresses of a name are used in turn, each with connections of its own.
package final class UpstreamPool {
    /// The interval, in nanoseconds, at which names are looked up again while connections are used. Addresses that are
    /// still fresh are not looked up.
    private static let lookInterval = NameTimes.shortest

    private struct Server {
        /// Whether the server is given by a name.
        let isNamed: Bool
        /// The addresses to which the server's name resolved; none if it has no name.
        var addresses: ServerAddresses
        /// The idle connections; the one that became idle last is the last.
        var idle: [UpstreamConnection] = []
        /// How long the server keeps idle connections open.
        var patience = ServerPatience()
        /// The number of open connections, idle ones included.
        var open = 0
        /// The number of open connections by address, for a server with a name.
        var openTo: [SocketAddress: Int] = [:]

        mutating func count(_ change: Int, to address: SocketAddress) {
            self.open += change
            guard isNamed else { return }
            let count = openTo[address, default: 0] + change
            openTo[address] = count == 0 ? nil : count
        }
    }

    /// The settings of the origin.
    package let settings: UpstreamSettings
    /// The loop of the pool.
    package let loop: EventLoop
    /// The metrics of the loop, which count the pool's connections.
    package let metrics: LoopMetrics
    /// The metrics of the origin on the loop, which count the pool's exchanges.
    let upstreamMetrics: UpstreamMetrics
    /// Connections that have received a response's head, or a part of one.
    private let batch: SocketBatch
    private let buffers: BufferStock
    private let isMemoryShort: () -> Bool
    let deadlines: DeadlineWheel
    let timeouts: UpstreamTimeouts
    private let names: NameResolution
    private let resolver: Resolver
    private let balance: Exclusive<ServerBalance>
    private let onNews: (UpstreamServer, ServerNews) -> Void
    private let onConnection: (SocketAddress, ConnectionNews) -> Void
    private let servers: Exclusive<[Server]>
    private var idleCount = 0
    /// Whether any server has had several addresses: until then, addresses need no turns.
    private var hasSeveralAddresses = false
    /// When the names are looked up again, in nanoseconds of the loop's clock.
    private var nextNameLookup = Int64.max
    /// Whether the pool was retired: it keeps no connection any more, and connections in use are closed after their
    /// exchange.
    private(set) var isRetired = false

    /// - Parameters: `resolver`, `buffers` and `metrics` are the loop's; `names` is shared by all loops. While
    ///   `isMemoryShort` is true, responses are read in small pieces, since they may have to wait. `firstServer` is
    ///   asked first (`ServerBalance`). `onNews` is called on the loop, and so is `onConnection` for each connection
    ///   that is opened or closed.
    package init(
        _ settings: UpstreamSettings, on loop: EventLoop, resolver: Resolver, names: NameResolution,
        buffers: BufferStock, isMemoryShort: @escaping () -> Bool = { false }, metrics: LoopMetrics,
        firstServer: Int = 0,
        onNews: @escaping (UpstreamServer, ServerNews) -> Void,
        onConnection: @escaping (SocketAddress, ConnectionNews) -> Void = { _, _ in }
    ) {
        self.settings = settings
        self.loop = loop
        self.resolver = resolver
        self.names = names
        self.buffers = buffers
        batch = SocketBatch(on: loop)
        self.isMemoryShort = isMemoryShort
        self.metrics = metrics
        upstreamMetrics = metrics.upstream(settings.name)
        self.onNews = onNews
        self.onConnection = onConnection
        deadlines = loop.deadlines
        timeouts = UpstreamTimeouts(settings)
        balance = Exclusive(
            ServerBalance(
                servers: settings.servers.count, startingAt: firstServer, maxFailures: settings.maxFailures,
                cooldown: settings.failureCooldown.nanoseconds))
        let addresses = ServerAddresses(
            startingAt: firstServer, maxFailures: settings.maxFailures, cooldown: settings.failureCooldown.nanoseconds)
        servers = Exclusive(settings.servers.map { Server(isNamed: $0.address == nil, addresses: addresses) })
    }

    /// Closes every idle connection, and keeps none any more. Called when the pool is no longer used.
    package func retire() {
        isRetired = true
        for connection in servers.use({ $0.flatMap(\.idle) }) { connection.end(.outOfUse) }
    }

    // Methods, not properties: an object that is reached through two others is retained at each use.

    /// An empty buffer to read into.
    @inline(never)
    func lendBuffer() -> ByteBuffer {
        isMemoryShort() ? ByteBuffer(capacity: UpstreamConnection.smallestRead) : buffers.lend()
    }
    @inline(never)
    func takeBack(_ buffer: ByteBuffer) { buffers.takeBack(buffer) }

    @inline(never)
    func countIn(_ bytes: Int) { metrics.add(.upstreamBytesIn, UInt64(bytes)) }
    @inline(never)
    func countOut(_ bytes: Int) { metrics.add(.upstreamBytesOut, UInt64(bytes)) }

    /// Counts an exchange that begins on a connection.
    @inline(never)
    func countExchange(isReused: Bool) {
        upstreamMetrics.add(.fetches)
        if isReused { metrics.add(.upstreamReuses) }
    }

    /// The connection handles the head that it has read in a batch with the heads of others.
    @inline(never)
    func handleLater(_ connection: UpstreamConnection) { batch.add(connection) }

    /// - Parameter duration: how long connecting took, in nanoseconds.
    func opened(_ connection: UpstreamConnection, after duration: UInt64) {
        metrics.add(.upstreamConnects)
        upstreamMetrics.add(.connect, duration)
        servers.use { $0[connection.server].count(1, to: connection.address) }
        onConnection(connection.address, .opened(after: duration))
    }

    func closed(_ connection: UpstreamConnection, _ why: ConnectionEnd, exchanges: Int) {
        metrics.add(.upstreamCloses)
        servers.use { $0[connection.server].count(-1, to: connection.address) }
        onConnection(connection.address, .closed(why, exchanges: exchanges))
    }

    func countResponse(_ status: StatusClass) { upstreamMetrics.add(.responses(status)) }

    /// - Parameter duration: the nanoseconds since the request had been sent.
    @inline(never)
    func countFinalResponse(_ status: StatusClass, after duration: UInt64) {
        upstreamMetrics.add(.responses(status))
        upstreamMetrics.add(.firstByte, duration)
    }

    /// Takes an idle connection to `server` that the request may use, if there is one.
    /// - Parameters:
    ///   - address: the address whose turn it is; `nil`: the server has no choice of addresses.
    ///   - mayRepeat: whether the request is sent again if the connection is dead.
    func takeIdle(server: Int, at address: SocketAddress? = nil, mayRepeat: Bool) -> UpstreamConnection? {
        guard idleCount > 0 else { return nil }
        let now = loop.now
        if now >= nextNameLookup { refreshNames() }
        let connection = servers.use { servers -> UpstreamConnection? in
            // If this connection is too old, so are the others.
            var place = servers[server].idle.count - 1
            if let address { place = servers[server].idle.lastIndex { $0.address == address } ?? -1 }
            guard place >= 0 else { return nil }
            let last = servers[server].idle[place]
            guard now < last.deadline.time else { return nil }
            let idle = now - last.idleSince
            guard mayRepeat || idle < servers[server].patience.trusted(statesTimeout: last.statesTimeout) else {
                // Not taken, but still open. If the server gets only requests that cannot be sent twice, no other
                // observation shows that its connections may last longer.
                if !last.isKnownOpen { servers[server].patience.noteOpen(after: idle) }
                last.isKnownOpen = true
                return nil
            }
            if address == nil { return servers[server].idle.removeLast() }
            return servers[server].idle.remove(at: place)
        }
        if connection != nil { idleCount -= 1 }
        return connection
    }

    /// Notes that a connection that had been idle for `idle` nanoseconds was still open then, or was closed by its
    /// server.
    /// - Parameter metRequest: whether a request had been sent on the connection by then.
    func noteIdle(_ idle: Int64, of server: Int, wasClosed: Bool, metRequest: Bool = false) {
        servers.use {
            if wasClosed {
                $0[server].patience.noteClosed(after: idle, metRequest: metRequest)
            } else {
                $0[server].patience.noteOpen(after: idle)
            }
        }
    }

    /// Keeps a connection for the next exchange, if there is room and its address is still in use.
    @inline(never)
    func keep(idle connection: UpstreamConnection) -> Bool {
        guard !isRetired, idleCount < settings.maxIdleConnections else { return false }
        let isKept = servers.use { servers in
            if servers[connection.server].isNamed,
                !servers[connection.server].addresses.all.contains(connection.address)
            {
                return false
            }
            servers[connection.server].idle.append(connection)
            return true
        }
        if isKept { idleCount += 1 }
        return isKept
    }

    func forget(idle connection: UpstreamConnection) {
        let isThere = servers.use { servers in
            guard let index = servers[connection.server].idle.firstIndex(where: { $0 === connection }) else {
                return false
            }
            servers[connection.server].idle.remove(at: index)
            return true
        }
        if isThere { idleCount -= 1 }
    }

    /// The server to ask.
    /// - Parameter others: servers that the same request asked in vain.
    @inline(never)
    func nextServer(besides others: [Int]) -> ServerBalance.Pick {
        let now = loop.now
        return balance.use { $0.pick(at: now, besides: others) }
    }

    /// Notes that the exchange that was chosen to try a server ended without a verdict.
    func undecided(server: Int, tryBegan began: Int64) {
        let now = loop.now
        balance.use { $0.undecided(server, tryBegan: began, at: now) }
    }

    func succeeded(server: Int) {
        let now = loop.now
        if balance.use({ $0.succeeded(server, at: now) }) { onNews(settings.servers[server], .isBack) }
    }

    func failed(server: Int, _ error: UpstreamError) {
        let now = loop.now
        if balance.use({ $0.failed(server, at: now) }) { onNews(settings.servers[server], .isFailing(error)) }
    }

    // MARK: Addresses of a server that has several

    /// The address whose turn it is; `nil` if there is no choice.
    func nextAddress(of server: Int) -> ServerAddresses.Turn? {
        guard hasSeveralAddresses else { return nil }
        let now = loop.now
        return servers.use { $0[server].addresses.next(at: now) }
    }

    /// All addresses, in the order in which to try them.
    func addresses(of server: Int, from turn: SocketAddress) -> [SocketAddress] {
        let now = loop.now
        return servers.use { $0[server].addresses.order(from: turn, at: now) }
    }

    func succeeded(server: Int, at address: SocketAddress) {
        let now = loop.now
        if servers.use({ $0[server].addresses.succeeded(address, at: now) }) {
            onNews(settings.servers[server], .addressIsBack(address))
        }
    }

    /// - Parameters:
    ///   - isCertain: whether no connection could be established, or a later attempt to another address was faster.
    ///   - error: the error to report; `nil`: report none.
    func failed(server: Int, at address: SocketAddress, isCertain: Bool, _ error: UpstreamError?) {
        let now = loop.now
        let isNews = servers.use { $0[server].addresses.failed(address, isCertain: isCertain, at: now) }
        if isNews, let error { onNews(settings.servers[server], .addressIsFailing(address, error)) }
    }

    func undecided(server: Int, _ turn: ServerAddresses.Turn) {
        guard let began = turn.tryBegan else { return }
        let now = loop.now
        servers.use { $0[server].addresses.undecided(turn.address, tryBegan: began, at: now) }
    }

    /// The state of each server, as this loop sees it.
    package var serverStates: [ServerState] {
        let now = loop.now
        return settings.servers.indices.map { server in
            var state = balance.use { $0.state(of: server, at: now) }
            servers.use { servers in
                let server = servers[server]
                (state.idle, state.inUse) = (server.idle.count, server.open - server.idle.count)
                state.addresses = server.addresses.states(at: now)
                for index in state.addresses.indices {
                    let address = state.addresses[index].address
                    let idle = server.idle.count { $0.address == address }
                    state.addresses[index].state.idle = idle
                    state.addresses[index].state.inUse = server.openTo[address, default: 0] - idle
                }
            }
            return state
        }
    }

    /// The addresses of a server: remembered, looked up, or taken from a look-up in flight.
    func resolve(server: Int, _ completion: @escaping (Result<[SocketAddress], UpstreamError>) -> Void) {
        // `self` is not captured weakly, since that would make every reference to the pool slow. A look-up holds the
        // pool no longer than the look-up takes.
        names.addresses(of: settings.servers[server], longest: settings.resolveTTL.nanoseconds, on: resolver) {
            [self] result in
            // A failure means that no address of the name is known any more, not even a former one.
            learn((try? result.get()) ?? [], of: server)
            completion(result)
        }
    }

    /// Looks up again, beside the requests, the names that have addresses: a busy connection would otherwise stay at an
    /// address that its name lost long ago. The requests use the known addresses until an answer comes, if one does.
    package func refreshNames() {
        guard nextNameLookup != .max else { return }
        nextNameLookup = loop.now + Self.lookInterval
        let known = servers.use { servers in servers.indices.filter { !servers[$0].addresses.all.isEmpty } }
        for server in known { resolve(server: server) { _ in } }
    }

    private func learn(_ found: [SocketAddress], of server: Int) {
        guard servers.use({ $0[server].isNamed }) else { return }
        let left = servers.use { servers in
            servers[server].addresses.change(to: found)
            if servers[server].addresses.areSeveral { hasSeveralAddresses = true }
            return servers[server].idle.filter { !found.contains($0.address) }
        }
        for connection in left { connection.end(.outOfUse) }
        if nextNameLookup == .max { nextNameLookup = loop.now + Self.lookInterval }
    }
}

/// An event of a server, as one loop sees it.
package enum ServerNews {
    /// The server had `maxFailures` in a row, the last with this error. Reported once, until the server is back.
    case isFailing(UpstreamError)
    case isBack
    /// An address of a server that has others failed. Reported once, until the address is back.
    case addressIsFailing(SocketAddress, UpstreamError)
    case addressIsBack(SocketAddress)
}
