import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Synchronization
import Telemetry
import Upstream

/// One loop's share of the proxy: its listeners, its clients, its connections to origins, and what they work with. Everything here lives
/// on the loop's thread.
final class Worker {
    /// What one read of a response takes at most, in bytes: half the window of a body that is not kept, so that its readers take one read while the next
    /// one comes.
    static let upstreamBufferSize = 128 << 10
    /// Unused buffers for responses kept.
    static let keptBuffers = 32
    /// How long a body waits for memory before it looks again, in nanoseconds.
    static let memoryRetryInterval: Int64 = 50_000_000

    let loop: EventLoop
    let index: Int
    let shared: SharedState
    /// Of `shared`.
    private let store: ResponseStore
    let variations: SearchVariations
    let metrics: LoopMetrics
    let recorder: Recorder
    let notices: Notices
    let followers: BodyFollowers
    let deadlines: DeadlineWheel
    let turns: Turns
    let gather = GatherList()
    /// Where heads are put together, of responses and of requests to origins, and small bodies behind them.
    let scratch = ByteBuffer(capacity: 32 << 10)
    let keys: KeyWriter
    let buffers = BufferStock(bufferCapacity: Worker.upstreamBufferSize, most: Worker.keptBuffers)
    private(set) var runtime: Runtime
    /// With these settings.
    private(set) var hitPath: HitPath
    private(set) var timeouts: ClientTimeouts
    /// On one connection.
    private(set) var mostRequests: Int
    private(set) var errors: ErrorResponses
    private(set) var isDraining = false
    /// The one that the next request like its last one's joins.
    var crowd: Crowd?

    private let resolver: Resolver
    /// With its origin, so that no other can come to have the same identity.
    private var pools: [ObjectIdentifier: (origin: Origin, pool: UpstreamPool)] = [:]
    /// The one asked for last, for most requests.
    private var latestOrigin: Origin?
    private var latestPool: UpstreamPool?
    private let contexts: ReadContexts
    private var connections: [ObjectIdentifier: ClientConnection] = [:]
    private var listeners: [Listener] = []
    private var onIdle: (() -> Void)?

    /// - Parameters:
    ///   - ring: of the access log; `nil` without one.
    ///   - logMark: called when that should be written soon.
    init(
        index: Int, on loop: EventLoop, shared: SharedState, runtime: Runtime, metrics: LoopMetrics, ring: LogRing?,
        logMark: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        self.index = index
        self.loop = loop
        self.shared = shared
        store = shared.store
        variations = shared.variations
        self.runtime = runtime
        self.metrics = metrics
        recorder = Recorder(loop: loop, metrics: metrics, ring: ring, logMark: logMark)
        notices = Notices(loop: loop, log: shared.log)
        deadlines = loop.deadlines
        turns = Turns(loop: loop)
        followers = BodyFollowers(loop: loop, index: index, turns: turns)
        keys = KeyWriter(hash: shared.keyHash)
        timeouts = ClientTimeouts(runtime.settings.clients)
        contexts = ReadContexts(limits: HeadLimits(runtime.settings.clients))
        mostRequests = runtime.settings.clients.maxRequestsPerConnection ?? .max
        errors = ErrorResponses(forwarding: runtime.responseForwarding, proxyStatus: runtime.proxyStatus)
        resolver = try Resolver(on: loop)
        hitPath = HitPath(
            runtime: runtime, shared: shared, loop: loop, keys: keys, output: scratch, recorder: recorder)
        shared.joins(self)
    }

    var settings: ProxySettings { runtime.settings }
    var storage: StorageSettings { shared.storage }

    // What is reached through two objects is counted, at each use. So those that are asked for often are reached through one, by a call.

    /// Nanoseconds of the loop's clock.
    var now: Int64 { @inline(never) get { loop.now } }
    var moment: Moment { @inline(never) get { Moment(monotonic: loop.now, wall: loop.wallClockSeconds) } }

    /// What is known under the request's key.
    @inline(never)
    func resource(for request: ClientRequest) -> CachedResource? { store.resource(request.key) }

    /// Of what the response to a request may be stored under, before it is asked for.
    @inline(never)
    func generations(for request: ClientRequest) -> (ofKey: Generation, ofSentKey: Generation, ofPath: UInt64) {
        let generation = store.generation(request.key)
        return (
            generation, request.isUnderVariation ? store.generation(request.sentKey) : generation,
            variations.invalidations(near: request.sentKey.bytes))
    }

    /// Serves it when all sockets that are ready have been read.
    @inline(never)
    func serveSoon(_ transaction: Transaction) { turns.putSoon(transaction) }

    // MARK: Life

    /// Accepts on `address` from now on; gives the address with the port that was chosen.
    func listen(at address: SocketAddress) throws(ListenError) -> SocketAddress {
        var settings = Listener.Settings()
        settings.backlog = Int32(clamping: runtime.settings.backlog)
        settings.sharesPort = true
        let listener = try Listener(
            address, on: loop, settings: settings,
            onFailure: { [notices] error in notices.cannotAccept(error) },
            accept: { [unowned self] descriptor, peer in accept(descriptor, from: peer) })
        listeners.append(listener)
        return listener.localAddress
    }

    func apply(_ new: Runtime) {
        runtime = new
        hitPath = HitPath(runtime: new, shared: shared, loop: loop, keys: keys, output: scratch, recorder: recorder)
        timeouts = ClientTimeouts(new.settings.clients)
        contexts.change(HeadLimits(new.settings.clients))
        mostRequests = new.settings.clients.maxRequestsPerConnection ?? .max
        errors = ErrorResponses(forwarding: new.responseForwarding, proxyStatus: new.proxyStatus)
        let kept = Set(new.origins.map { ObjectIdentifier($0) })
        for (id, entry) in pools where !kept.contains(id) {
            entry.pool.closeIdle()
            pools[id] = nil
        }
        (latestOrigin, latestPool) = (nil, nil)
        crowd = nil
    }

    /// Accepts no more, ends connections after the request they are at, and calls `whenIdle` once none is left.
    func drain(whenIdle: @escaping () -> Void) {
        isDraining = true
        listeners.removeAll()
        onIdle = whenIdle
        for connection in Array(connections.values) { connection.drain() }
        reportIdle()
    }

    /// Ends every connection now.
    func cut() {
        for connection in Array(connections.values) { connection.end() }
        for entry in pools.values { entry.pool.closeIdle() }
    }

    private func reportIdle() {
        guard isDraining, connections.isEmpty else { return }
        onIdle?()
        onIdle = nil
    }

    // MARK: Clients

    private func accept(_ descriptor: consuming Descriptor, from peer: SocketAddress) {
        let count = shared.connections.wrappingAdd(1, ordering: .relaxed).newValue
        guard count <= settings.clients.maxConnections else {
            shared.connections.subtract(1, ordering: .relaxed)
            metrics.add(.clientConnectionsRefused)
            notices.tooManyConnections(most: settings.clients.maxConnections)
            turnAway(descriptor)
            return
        }
        metrics.add(.clientConnectionsOpened)
        let connection = ClientConnection(adopting: descriptor, peer: peer, worker: self)
        connections[ObjectIdentifier(connection)] = connection
    }

    /// Answers 503 without reading: what is sent fits into an empty socket buffer.
    private func turnAway(_ descriptor: consuming Descriptor) {
        let socket = Socket(adopting: descriptor, on: loop)
        let buffer = ByteBuffer(capacity: 512)
        let content = errors.write(
            .serviceUnavailable, "There are too many connections.", provenance: nil, persists: false,
            date: loop.wallClockSeconds, to: buffer)
        var sent = 0
        _ = Delivery(head: buffer, source: content, framing: .sized).pump(on: socket, gather, sent: &sent)
        socket.close()
    }

    func ended(_ connection: ClientConnection) {
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        shared.connections.subtract(1, ordering: .relaxed)
        metrics.add(.clientConnectionsClosed)
        reportIdle()
    }

    func lendContext() -> ReadContext { contexts.lend() }
    func lendContentContext() -> ReadContext { contexts.lendForContent() }
    func takeBack(_ context: consuming ReadContext) { contexts.takeBack(context) }

    // MARK: Origins

    func pool(for request: ClientRequest) -> UpstreamPool {
        let origin = request.route.origin
        if let latestPool, latestOrigin === origin { return latestPool }
        let id = ObjectIdentifier(origin)
        if let entry = pools[id] {
            (latestOrigin, latestPool) = (origin, entry.pool)
            return entry.pool
        }
        let pool = UpstreamPool(
            origin.settings, on: loop, resolver: resolver, names: shared.names, buffers: buffers, metrics: metrics)
        if runtime.origins.contains(where: { $0 === origin }) {
            pools[id] = (origin, pool)
        } else {
            // For a request that is still on its way by a route that was dropped.
            pool.closeIdle()
        }
        return pool
    }

    func fetches(of request: ClientRequest) -> OperationQueueManager<FetchKey> { request.route.origin.fetches }

    func makeFetch(_ request: ClientRequest, _ plan: FetchPlan, client: (any FetchClient)?) -> FetchOperation {
        let fetch = Fetch(request, plan: plan, worker: self)
        fetch.client = client
        let operation = FetchOperation(number: shared.nextOperation(), plan: plan, work: LoopOwned(fetch, on: loop))
        guard plan.isShared else { return operation }
        operation.waiterLimit = settings.coalescing.maxWaiters
        // Before it has begun there is nothing to finish (`Fetch.begin`).
        operation.lastLeavePolicy = plan.isRefresh ? .goOn : .cancel
        return operation
    }

    /// From now on `crowd` is joined; until the end of this iteration if nobody does.
    func gather(_ crowd: Crowd) {
        self.crowd = crowd
        loop.afterBatch { [self] in
            if self.crowd === crowd, !crowd.isGathering { self.crowd = nil }
        }
    }
}
