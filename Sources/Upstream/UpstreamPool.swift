public import Bytes
public import Libevent
public import Telemetry

/// One loop's connections to one origin: which server is next, and which connections are idle.
///
/// Confined to its loop. Idle connections are used last in, first out: the one used last is the least likely to be dead,
/// and surplus ones grow old and close.
public final class UpstreamPool {
    /// Of the origin.
    public let settings: UpstreamSettings
    /// On which everything of it happens.
    public let loop: EventLoop
    /// Where its connections and failures are counted: those of the loop.
    public let metrics: LoopMetrics
    private let buffers: BufferStock
    let deadlines: DeadlineWheel
    let timeouts: UpstreamTimeouts
    private let names: NameResolution
    private let resolver: Resolver
    private let balance: Exclusive<ServerBalance>
    /// For each server.
    private let idle: Exclusive<[[UpstreamConnection]]>
    private var idleCount = 0
    /// Keeps no connection any more: those in use are closed after their exchange.
    private var isDropped = false

    /// - Parameters: `resolver`, `buffers` and `metrics` are the loop's, `names` is shared by all loops.
    public init(
        _ settings: UpstreamSettings, on loop: EventLoop, resolver: Resolver, names: NameResolution,
        buffers: BufferStock, metrics: LoopMetrics
    ) {
        self.settings = settings
        self.loop = loop
        self.resolver = resolver
        self.names = names
        self.buffers = buffers
        self.metrics = metrics
        deadlines = loop.deadlines
        timeouts = UpstreamTimeouts(settings)
        balance = Exclusive(ServerBalance(
            servers: settings.servers.count, maxFailures: settings.maxFailures,
            cooldown: settings.failureCooldown.nanoseconds))
        idle = Exclusive(Array(repeating: [], count: settings.servers.count))
    }

    /// Closes every idle connection: the pool is going away.
    public func closeIdle() {
        isDropped = true
        for connections in idle.use({ $0 }) { for connection in connections { connection.end() } }
    }

    // Calls, not properties: what is reached through two objects is retained at each use.

    /// An empty buffer to read into.
    @inline(never)
    func lendBuffer() -> ByteBuffer { buffers.lend() }
    @inline(never)
    func takeBack(_ buffer: ByteBuffer) { buffers.takeBack(buffer) }

    func takeIdle(server: Int) -> UpstreamConnection? {
        guard idleCount > 0, let connection = idle.use({ $0[server].popLast() }) else { return nil }
        idleCount -= 1
        return connection
    }

    /// Keeps a connection for the next exchange, when there is room.
    func keep(idle connection: UpstreamConnection) -> Bool {
        guard !isDropped, idleCount < settings.maxIdleConnections else { return false }
        idle.use { $0[connection.server].append(connection) }
        idleCount += 1
        return true
    }

    func forget(idle connection: UpstreamConnection) {
        let isThere = idle.use { idle in
            guard let index = idle[connection.server].firstIndex(where: { $0 === connection }) else { return false }
            idle[connection.server].remove(at: index)
            return true
        }
        if isThere { idleCount -= 1 }
    }

    /// Which server is to be asked.
    func nextServer() -> Int {
        let now = loop.now
        return balance.use { $0.pick(at: now) }
    }

    func succeeded(server: Int) { balance.use { $0.succeeded(server) } }
    func failed(server: Int) {
        let now = loop.now
        balance.use { $0.failed(server, at: now) }
    }

    /// The addresses of a server: remembered, looked up, or by joining a look-up in flight.
    func resolve(server: Int, _ completion: @escaping (Result<[SocketAddress], UpstreamError>) -> Void) {
        let server = settings.servers[server]
        names.addresses(
            of: server, timeToLive: settings.resolveTTL.nanoseconds, on: resolver, completion: completion)
    }
}
