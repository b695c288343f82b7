public import HTTPSemantics
public import Libevent

/// What the proxy is told about itself: an immutable value that every loop reads and swaps as a whole.
///
/// A default stands here with its reason and nowhere else. The ranges a configuration file may choose from stand in
/// `Configuration`.
public struct ProxySettings: Sendable, Equatable {
    /// Where clients connect. Port 0: any free one.
    public var listeners: [SocketAddress] = [.ipv4(.loopback, port: 8080)]
    /// Permissions of the unix sockets among them; `nil`: what the umask leaves.
    public var socketMode: UInt32?
    /// Connections the kernel holds per listener until a loop accepts them: enough for a burst of thousands, and what
    /// Linux allows by default (`net.core.somaxconn`).
    public var backlog = 4096
    /// Worker loops, a thread each; 0: as many as there are processors for (`processorCount`).
    public var workers = 0
    /// Hosts that are served, in lower case and without a port; others get 421 (RFC 9110 §15.5.20). Empty: all.
    public var hosts: [HostPattern] = []
    /// How long clients are still let in after the first `SIGTERM`, while `/readyz` fails. None: only a load balancer in
    /// front needs it, and every restart would take as long.
    public var drainDelay: Duration = .zero
    /// How long requests may go on after that before they are cut: less than the 60 s after
    /// which systemd kills (`TimeoutStopSec` of the unit).
    public var drainTimeout: Duration = .seconds(30)
    public var clients = ClientSettings()
    public var forwarding = ForwardingSettings()
    public var coalescing = CoalescingSettings()
    public var caching = CachingSettings()
    /// Looked through from the first to the last; the first that matches decides. Empty: everything goes to the first
    /// upstream.
    public var routes: [RouteSettings] = []

    public init() {}
}

/// What one client may take.
public struct ClientSettings: Sendable, Equatable {
    /// Client connections over all loops; the next one takes the place of the one on its loop that has been idle for
    /// longest, or gets 503. Each idle one costs a descriptor and a few hundred bytes.
    public var maxConnections = 20_000
    /// Bytes of a request head, its line included: room for large cookies; more gets 431.
    public var maxHeadSize = 32 << 10
    /// Field lines of a request, as most servers allow; more gets 431.
    public var maxFieldLines = 100
    /// Bytes of a request target, above the 8 000 that RFC 9112 §3 asks for; more gets 414.
    public var maxTargetLength = 8 << 10
    /// Bytes of a request's content; more gets 413. `nil`: no limit, since what is large streams through.
    public var maxBodySize: Int?
    /// Bytes of a request's content that are read before the request takes a slot and is sent: room for forms and API
    /// calls. Larger content streams. 0: all does.
    public var bodyBuffer = 64 << 10
    /// Requests on one connection before it is closed. `nil`: no limit.
    public var maxRequestsPerConnection: Int?
    /// From a request's first byte to the end of its head; then 408. Kept short: slow heads are an attack (slowloris).
    public var headTimeout: Duration = .seconds(10)
    /// Between two requests of a connection: outlasts a page's burst of requests; an idle connection is cheap.
    public var idleTimeout: Duration = .seconds(60)
    /// Without a byte of a request's content while it is awaited; then 408.
    public var bodyTimeout: Duration = .seconds(30)
    /// Bytes a second of a request's content; a client that sends fewer uses up `bodyTimeout` in the end, however
    /// steadily it sends. Below what any network in use brings, above what is sent to hold a place (slowhttptest sends
    /// a few bytes every ten seconds). `nil`: none.
    public var minBodyRate: Int? = 100
    /// Without a byte taken by a client that reads slowly; then the connection is cut.
    public var sendTimeout: Duration = .seconds(60)
    /// Without a byte either way through an upgraded connection; then it is cut. Longer than WebSocket peers are silent
    /// who still mean it, and what proxies customarily give a tunnel.
    public var tunnelTimeout: Duration = .seconds(3600)
    /// The proxies whose `X-Forwarded-For` says who the client is, for the access log, and whose `X-Real-IP` and the
    /// like go on. None: what anybody may write there is nobody's address.
    public var trustedProxies: [TrustedProxy] = []

    public init() {}
}

/// What is added to messages on their way, and what of them goes on.
public struct ForwardingSettings: Sendable, Equatable {
    /// The name in `Via` (RFC 9110 §7.6.3) and the first word of `Cache-Status`. `nil`: no `Via`, against
    /// the RFC; `CDN-Loop` and `Cache-Status` then have `programName`.
    public var viaName: String? = Self.programName
    /// `X-Forwarded-For`, `-Proto` and `-Host` on requests to upstreams.
    public var sendsXForwarded = true
    /// Request fields go to upstreams whose names hold other characters than letters, digits and hyphens. Off: some
    /// upstreams take them for others.
    public var sendsOddNames = false
    /// `Cache-Status` (RFC 9211) on responses.
    public var sendsCacheStatus = true
    /// `Proxy-Status` (RFC 9209) on responses that stand for a failed upstream.
    public var sendsProxyStatus = true
    /// What the proxy is called where nobody says otherwise; also in `Cache-Status`, `Proxy-Status` and `CDN-Loop`
    /// where there is no `Via`.
    static let programName = "coalesced"

    public init() {}
}

/// When requests share one fetch.
public struct CoalescingSettings: Sendable, Equatable {
    /// Off: every miss fetches for itself.
    public var isEnabled = true
    /// Requests that wait for one operation: a whole crowd, but not every connection there is.
    public var maxWaiters = 10_000
    /// How long a request waits for the head of a fetch it joined, or for its own fetch to begin. A leader whose fetch
    /// has begun waits as long as that does, and so does a request that gave up such a wait before.
    public var waitTimeout: Duration = .seconds(30)
    /// Without a byte from the origin for this long, a fetch is overtaken: the next request starts another. Shorter
    /// than the time after which the upstream is given up (`UpstreamSettings.noProgressTimeout`), so that nobody queues
    /// behind it.
    public var overtakeAfter: Duration = .seconds(5)
    /// Bytes a second that a client must take of a response that is not kept whole, while others wait for it: half a
    /// megabit, below what most networks bring, above what somebody must take who wants to hold up others. `nil`: none.
    public var minSharedRate: Int? = 64 << 10
    /// What happens to a request at one of the bounds above.
    public var whenExceeded = BoundAction.pass
    /// What happens to a fetch that all who wanted it have left.
    public var whenLastLeaves = LastLeaveAction.finish
    /// How long a key is remembered as not shareable, from the response that proved it: common practice (Varnish's
    /// hit-for-pass), short enough to notice that an origin was mended.
    public var unshareableTTL: Duration = .seconds(120)

    public init() {}
}

/// What happens to a request when a bound of coalescing is hit.
public enum BoundAction: String, Sendable, CaseIterable {
    /// A stale response when one is stored (RFC 9111 §4.2.4 permitting), else 503.
    case stale
    /// The next fetch for the same, which it shares with all others at the bound; where that is no way round the bound,
    /// as `stale`.
    case pass
    /// 503 with `Retry-After`.
    case unavailable = "503"
}

/// What happens to a fetch that has begun and that all clients have left. One that waits for its slot is cancelled.
public enum LastLeaveAction: String, Sendable, CaseIterable {
    /// The fetch goes on and its response is stored: the next client will want it.
    case finish
    /// The fetch is cut, which spares the origin.
    case cancel
}

/// What is stored and how long it is used, where responses do not say it themselves.
public struct CachingSettings: Sendable, Equatable {
    /// Off: nothing is stored; requests in flight are still shared. A route may differ.
    public var isEnabled = true
    /// The rules of storing, reusing and sharing. A route may differ in what `RouteSettings` has of them.
    /// What is forwarded and to whom (`writesForwarded`, `writesVia`, `forwardsSenders`, `forwardsOddNames`,
    /// `keyedFields`), `storesResponses` and whether answers to POST are stored follow from other settings, whatever
    /// stands here.
    public var policy = CachingPolicy()
    /// A request with one of these cookies goes past the cache: it is answered by the origin, and that is neither shared
    /// nor stored. A route may differ.
    public var passCookies: [CookiePattern] = []
    /// Ranges served in one response; a request for more gets the whole (RFC 9110 §14.2 on many small ranges).
    public var maxRanges = 16
    /// What the origin is asked for when a client wants a range and nothing of the representation is stored. A route
    /// may differ.
    public var rangeMisses = RangeMissRule.whole

    public init() {}
}

/// What the origin is asked for when a client wants a range and nothing of the representation is stored.
public enum RangeMissRule: String, Sendable, CaseIterable {
    /// The whole, once for all: what is stored serves every range.
    case whole
    /// The range that the client wants, which is stored as a part: for origins of large files.
    case part
}
