import Bytes
import Libevent
import Telemetry
import Upstream

/// One loop's connections to origins: a pool for each origin of the settings, made when it is first asked for.
///
/// Owned by its worker, confined to its loop.
final class UpstreamPools {
    /// What one read of a response takes at most, in bytes: half the window of a body that is not kept, so that its
    /// readers take one read while the next one comes.
    static let bufferSize = 128 << 10
    /// Unused buffers for responses kept.
    static let keptBuffers = 32

    private let loop: EventLoop
    /// The index of the worker, so that each begins with another server.
    private let index: Int
    private let resolver: Resolver
    private let names: NameResolution
    private let buffers = BufferStock(bufferCapacity: UpstreamPools.bufferSize, most: UpstreamPools.keptBuffers)
    private let shared: SharedState
    private let metrics: LoopMetrics
    private let notices: Notices
    /// The origins of the current settings.
    private var origins: [Origin]
    /// Each pool with its origin, so that no other gets the same identity.
    private var pools: [ObjectIdentifier: (origin: Origin, pool: UpstreamPool)] = [:]
    /// The one asked for last, which most requests want.
    private var latest: (origin: Origin, pool: UpstreamPool)?

    init(
        of origins: [Origin], on loop: EventLoop, ofWorker index: Int, names: NameResolution, shared: SharedState,
        metrics: LoopMetrics, notices: Notices
    ) {
        self.origins = origins
        self.loop = loop
        self.index = index
        self.names = names
        self.shared = shared
        self.metrics = metrics
        self.notices = notices
        resolver = Resolver(on: loop)
    }

    func pool(of origin: Origin) -> UpstreamPool {
        if let latest, latest.origin === origin { return latest.pool }
        let id = ObjectIdentifier(origin)
        if let entry = pools[id] {
            latest = entry
            return entry.pool
        }
        let pool = UpstreamPool(
            origin.settings, on: loop, resolver: resolver, names: names, buffers: buffers,
            isMemoryShort: { [shared] in shared.isMemoryShort },
            metrics: metrics, firstServer: index,
            onNews: { [notices] in notices.serverChanged(origin, $0, $1) },
            onConnection: { [notices] in notices.connectionChanged(of: origin, to: $0, $1) })
        if origins.contains(where: { $0 === origin }) {
            pools[id] = (origin, pool)
        } else {
            // For a request that is still on its way by a route that was dropped.
            pool.retire()
        }
        return pool
    }

    /// New settings: the pools of origins that are still among them stay. Names are looked up anew, and connections to
    /// addresses that they no longer have are not used again.
    func change(to origins: [Origin]) {
        resolver.readFilesAgain()
        names.forget(at: loop.now)
        self.origins = origins
        latest = nil
        let kept = Set(origins.map { ObjectIdentifier($0) })
        for (id, entry) in pools {
            if kept.contains(id) { entry.pool.lookAgain(); continue }
            entry.pool.retire()
            pools[id] = nil
        }
    }

    /// How this loop finds the servers of the origins it has asked.
    var serverStates: [(origin: Origin, servers: [ServerState])] {
        pools.values.map { ($0.origin, $0.pool.serverStates) }
    }

    /// The loop is going away: none of its connections is kept any more.
    func retire() {
        for entry in pools.values { entry.pool.retire() }
    }
}
