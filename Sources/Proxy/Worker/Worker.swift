import Bytes
import HTTPSemantics
import Libevent
import Storage
import Telemetry

/// One loop's share of the proxy: its listeners, its clients, its connections to origins, and the objects that they
/// share. Confined to the loop's thread.
final class Worker {
    /// The interval at which a body that waits for memory checks for it, in nanoseconds.
    static let memoryRetryInterval: Int64 = 50_000_000
    /// How long a response's head waits for memory for its content, in nanoseconds: in a burst, other bodies hold the
    /// memory for about a second.
    static let headPatience: Int64 = 2_000_000_000

    /// This worker's place among the workers.
    let index: Int
    let loop: EventLoop
    let deadlines: DeadlineWheel
    let shared: SharedState
    // Also in `shared`; held here to avoid a retain.
    private let store: ResponseStore
    let variations: SearchVariations
    private let groups: GroupInvalidations

    let metrics: LoopMetrics
    let recorder: Recorder
    let notices: Notices
    let turns: Turns
    let pools: UpstreamPools
    let clients: ClientConnections

    // Objects that one client after another uses.
    let keys: KeyWriter
    /// The buffer in which the heads of responses and of requests to origins are composed, with small bodies behind
    /// them.
    let scratch = ByteBuffer(capacity: 32 << 10)
    let gatherList = GatherList()

    private(set) var loopSettings: LoopSettings
    /// The group that the next plain request for the same fetch joins.
    var latestGroup: WaiterGroup?

    /// - Parameters:
    ///   - loopSettings: the settings, of which the worker makes a copy.
    ///   - accessLog: `nil` if there is no access log.
    init(
        index: Int, on loop: EventLoop, shared: SharedState, loopSettings: LoopSettings, metrics: LoopMetrics,
        accessLog: AccessLog?
    ) {
        self.index = index
        self.loop = loop
        self.shared = shared
        store = shared.store
        variations = shared.variations
        groups = shared.groups
        let loopSettings = loopSettings.copy(countingIn: metrics)
        self.loopSettings = loopSettings
        self.metrics = metrics
        recorder = Recorder(
            loop: loop, metrics: metrics, feed: accessLog?.feed(ofWorker: index, on: loop),
            trustedProxies: loopSettings.trustedProxies)
        notices = Notices(loop: loop, shared: shared)
        deadlines = loop.deadlines
        turns = Turns(loop: loop)
        keys = KeyWriter(hash: shared.keyHash)
        clients = ClientConnections(
            on: loop, ofWorker: index, shared: shared, settings: loopSettings, metrics: metrics, recorder: recorder,
            keys: keys, turns: turns)
        pools = UpstreamPools(
            of: loopSettings.origins, on: loop, ofWorker: index, names: shared.names, shared: shared, metrics: metrics,
            notices: notices)
        shared.callbacks.add(turns, on: loop)
    }

    var settings: ProxySettings { loopSettings.settings }
    var storage: StorageSettings { shared.storage }
    var timeouts: ClientTimeouts { clients.timeouts }

    // An object reached through two others is retained at each use (docs/decisions.md, CPU). So frequently used members
    // have an accessor here that is not inlined.

    /// Nanoseconds of the loop's clock.
    var now: Int64 { @inline(never) get { loop.now } }
    var moment: Moment { @inline(never) get { Moment(monotonic: loop.now, wall: loop.wallClockSeconds) } }

    /// The resource stored under the request's key.
    @inline(never)
    func resource(for request: ClientRequest) -> CachedResource? { store.resource(request.key) }

    /// The decision for a request, made from the resource under its key.
    @inline(never)
    func lookUp(_ request: ClientRequest, in resource: CachedResource?, sharing: Lookup.FetchSharing) -> Lookup.Outcome
    {
        Lookup(request: request, resource: resource, groups: groups, now: moment, sharing: sharing).outcome
    }

    /// The stored response that may be sent in place of the response that the origin fails to give (RFC 9111 §4.2.4).
    @inline(never)
    func standIn(for request: ClientRequest, on failure: OriginFailure) -> StoredResponse? {
        // A `No-Vary-Search` rule may have been learnt since the request's key was chosen.
        let request = keyed(request)
        let resource = store.resource(request.key)
        return Lookup(request: request, resource: resource, groups: groups, now: moment, sharing: .shared)
            .standIn(on: failure)
    }

    /// Whether no new fetch begins until some of the bodies in use are done.
    var isOverloaded: Bool { @inline(never) get { shared.isOverloaded } }

    /// Records a request whose response is sent or aborted.
    @inline(never)
    func record(_ sent: SentResponse, of transaction: Transaction, client: ByteSlice) {
        let (request, fetched) = (transaction.request, transaction.fetched)
        let contacted = fetched == nil ? transaction.contactedServer : nil
        let server = fetched?.server ?? contacted?.address ?? .empty
        var provenance = transaction.provenance
        if sent.isAborted, let shortfall = fetched?.shortfall {
            provenance.detail = shortfall.detail
        } else if recorder.isCutOff(sent) {
            provenance.detail = Recorder.shutdown
        }
        recorder.record(
            sent, of: request, provenance, client: client.span, server: server.span,
            upstreamDuration: fetched?.upstreamDuration ?? contacted?.duration)
    }

    // MARK: Life

    /// Accepts connections at `target` from now on. Returns the address with the port that the kernel chose.
    func listen(at target: ListenTarget) throws(ListenError) -> SocketAddress {
        try clients.listen(at: target, for: self)
    }

    /// - Parameter settings: the new settings, of which the worker makes a copy.
    func apply(_ settings: LoopSettings) {
        let new = settings.copy(countingIn: metrics)
        loopSettings = new
        clients.apply(new)
        pools.change(to: new.origins)
        recorder.trustedProxies = new.trustedProxies
        latestGroup = nil
    }

    /// Closes each connection after its current request from now on; idle connections stay open until `drain`.
    func stopPersisting() { clients.stopPersisting() }

    /// Accepts no more connections, closes each connection after its current request, and calls `whenEmpty` once none
    /// is left.
    func drain(whenEmpty: @escaping () -> Void) {
        stopPersisting()
        clients.drain(for: self, whenEmpty: whenEmpty)
    }

    /// Counts the requests and tunnels that are about to be aborted.
    func reportCutOff() {
        recorder.isCuttingOff = true
        clients.reportCutOff()
    }

    /// Ends every connection now.
    func cut() {
        // The loop may have been stopped before it ran the posted `reportCutOff`.
        reportCutOff()
        clients.cut()
        pools.retire()
        recorder.finish()
    }
}
