import Bytes
import Libevent
import Routing
import Telemetry
import Upstream

/// One loop's connections to origins: a pool for each origin of the settings, made at its first use.
///
/// Owned by its `LoopContext`, confined to its loop.
final class UpstreamPools {
    /// The most bytes that one read of a response takes: half the window of a body that is not kept whole, so that its
    /// readers take the bytes of one read while the next one arrives.
    static let bufferSize = 128 << 10
    /// The most unused buffers for responses that are kept.
    static let keptBuffers = 32

    private let loop: EventLoop
    /// The index of the worker. Each worker begins with a different server.
    private let index: Int
    private let resolver: Resolver
    private let buffers = BufferStock(bufferCapacity: UpstreamPools.bufferSize, most: UpstreamPools.keptBuffers)
    private let shared: SharedState
    private let metrics: LoopMetrics
    private let notices: Notices
    /// The origins of the current settings.
    private var origins: [Origin]
    /// Each pool with its origin, whose `ObjectIdentifier` no other origin can get while it is held here.
    private var pools: [ObjectIdentifier: (origin: Origin, pool: UpstreamPool)] = [:]
    /// Pools of replaced settings, while they may have requests in flight.
    private var retired: [UpstreamPool] = []
    /// The other machines of the shared tier that were asked.
    private var machines: [UpstreamServer: UpstreamPool] = [:]
    private static let mostMachines = 64
    /// The pool used last, which most requests need.
    private var latest: (origin: Origin, pool: UpstreamPool)?

    init(
        of origins: [Origin], on loop: EventLoop, ofWorker index: Int, shared: SharedState, metrics: LoopMetrics,
        notices: Notices
    ) {
        self.origins = origins
        self.loop = loop
        self.index = index
        self.shared = shared
        self.metrics = metrics
        self.notices = notices
        resolver = Resolver(on: loop)
    }

    /// The connections to another machine of the shared tier.
    func machine(at server: UpstreamServer) -> UpstreamPool {
        if let known = machines[server] { return known }
        if machines.count >= Self.mostMachines {
            for pool in machines.values { retire(pool) }
            machines = [:]
        }
        var settings = UpstreamSettings(name: "shared-tier", servers: [server])
        // The machine has a head already. One that has died must not hold up those who wait.
        settings.connectTimeout = .milliseconds(500)
        settings.firstByteTimeout = .seconds(2)
        let pool = UpstreamPool(
            ServerGroup(settings), on: loop, resolver: resolver, names: shared.names, buffers: buffers,
            isMemoryShort: { [shared] in shared.isMemoryShort }, metrics: metrics, onNews: { _ in })
        machines[server] = pool
        return pool
    }

    func pool(of origin: Origin) -> UpstreamPool {
        if let latest, latest.origin === origin { return latest.pool }
        let id = ObjectIdentifier(origin)
        if let entry = pools[id] {
            latest = entry
            return entry.pool
        }
        let pool = UpstreamPool(
            origin.group, on: loop, resolver: resolver, names: shared.names, buffers: buffers,
            isMemoryShort: { [shared] in shared.isMemoryShort },
            metrics: metrics, firstServer: index,
            onNews: { [notices] in notices.placeChanged(of: origin, $0) },
            onConnection: { [notices] in notices.connectionChanged(of: origin, to: $0, $1) })
        if origins.contains(where: { $0 === origin }) {
            pools[id] = (origin, pool)
        } else {
            // The origin belongs to replaced settings: a request still has one of their routes.
            retire(pool)
        }
        return pool
    }

    /// Applies new settings. The pools of origins that are in them stay. Names are resolved again, and connections to
    /// addresses that a name no longer has are not reused.
    func change(to origins: [Origin]) {
        resolver.readFilesAgain()
        shared.names.forget(at: loop.now)
        self.origins = origins
        latest = nil
        let kept = Set(origins.map { ObjectIdentifier($0) })
        for (id, entry) in pools {
            if kept.contains(id) { entry.pool.refreshNames(); continue }
            retire(entry.pool)
            pools[id] = nil
        }
    }

    private func retire(_ pool: UpstreamPool) {
        pool.retire()
        forgetUnused()
        retired.append(pool)
    }

    private func forgetUnused() { retired.removeAll { pool in pool.connections.allSatisfy { $0.inUse == 0 } } }

    /// Closes the idle connections to servers that were drained.
    func update() { for entry in pools.values { entry.pool.update() } }

    /// This loop's connections to the origins to which it has sent requests, those of replaced settings included.
    func countConnections() -> [UpstreamPool.ConnectionCount] {
        forgetUnused()
        return pools.values.flatMap(\.pool.connections) + retired.flatMap(\.connections)
    }

    /// The loop ends: none of its upstream connections is kept any longer.
    func retire() {
        for entry in pools.values { entry.pool.retire() }
        for pool in machines.values { pool.retire() }
    }
}
