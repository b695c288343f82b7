import Bytes
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry
import Upstream

/// The objects that the requests and fetches of one loop share: time, settings, what all loops share, records, and
/// buffers that one request after another uses. Owned by the loop's `Worker`, confined to its loop.
final class LoopContext {
    let loop: EventLoop
    let deadlines: DeadlineWheel
    let shared: SharedState
    // Also in `shared`; held here to avoid a retain.
    let store: ResponseStore
    let variations: SearchVariations
    let tags: TagTable

    let metrics: LoopMetrics
    let recorder: Recorder
    let notices: Notices
    let turns: Turns
    let pools: UpstreamPools
    /// `nil` without a shared tier.
    let tier: TierEngine?

    // Objects that one request after another uses.
    let keys: KeyWriter
    /// The buffer in which the heads of responses and of requests to origins are composed, with small bodies behind
    /// them.
    let scratch = ByteBuffer(capacity: 32 << 10)
    let gatherList = GatherList()
    let requestIDs = RequestIDs()

    private(set) var loopSettings: LoopSettings

    /// - Parameters:
    ///   - index: the worker's place among the workers.
    ///   - settings: the settings, of which the context makes a copy.
    ///   - feed: `nil` if there is no access log.
    init(
        ofWorker index: Int, on loop: EventLoop, shared: SharedState, settings: LoopSettings, metrics: LoopMetrics,
        feed: AccessLogFeed?
    ) {
        self.loop = loop
        self.shared = shared
        store = shared.store
        variations = shared.variations
        tags = shared.tags
        loopSettings = settings.copy(countingIn: metrics)
        self.metrics = metrics
        recorder = Recorder(loop: loop, metrics: metrics, feed: feed, trustedProxies: loopSettings.trustedProxies)
        notices = Notices(loop: loop, shared: shared)
        deadlines = loop.deadlines
        turns = Turns(loop: loop)
        keys = KeyWriter(hash: shared.keyHash)
        pools = UpstreamPools(
            of: loopSettings.origins, on: loop, ofWorker: index, shared: shared, metrics: metrics, notices: notices)
        tier = settings.settings.sharedTier.map { TierEngine($0, shared.tier, on: loop) }
        shared.callbacks.add(turns, on: loop)
    }

    /// - Parameter settings: the new settings, of which the context makes a copy.
    func apply(_ settings: LoopSettings) {
        let new = settings.copy(countingIn: metrics)
        loopSettings = new
        pools.change(to: new.origins)
        recorder.trustedProxies = new.trustedProxies
    }

    var settings: ProxySettings { loopSettings.settings }
    var storage: StorageSettings { shared.storage }

    // An object reached through two others is retained at each use, and released afterwards, since another object might
    // take its place meanwhile: two atomic instructions. An object in a `let` of `self` is not. So frequently used
    // members have an accessor here that is not inlined, and so takes one step of the path only.

    /// Nanoseconds of the loop's clock.
    var now: Int64 { @inline(never) get { loop.now } }
    var moment: Moment { @inline(never) get { Moment(monotonic: loop.now, wall: loop.wallClockSeconds) } }

    /// The resource stored under the request's key.
    @inline(never)
    func resource(for request: ClientRequest) -> CachedResource? { store.resource(request.key) }

    /// Whether no new fetch begins until some of the bodies in use are done.
    var isOverloaded: Bool { @inline(never) get { shared.isOverloaded } }
}
