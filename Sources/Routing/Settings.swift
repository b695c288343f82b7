package import HTTPSemantics
package import Libevent
package import TLS

/// The settings of the proxy: an immutable value that every loop reads, and replaces as a whole at a reload.
///
/// Each default is defined here, with its reason, and nowhere else. `Configuration` defines the range of each key of a
/// configuration file.
package struct ProxySettings: Sendable, Equatable {
    /// The addresses at which clients connect. Port 0: any free one.
    package var listeners: [SocketAddress] = [.ipv4(.loopback, port: 8080)]
    /// Those of the listeners at which each connection begins with a PROXY header (`ProxyHeader`). Only trusted proxies
    /// may connect there.
    package var proxiedListeners: Set<SocketAddress> = []
    /// Those whose clients may not speak HTTP/2.
    package var listenersOfHTTP1: Set<SocketAddress> = []
    /// Those of the listeners whose clients speak TLS, and whether these show certificates.
    package var secureListeners: [SocketAddress: ClientCertificates] = [:]
    package var tls = TLSSettings()
    /// Permissions of the Unix sockets among the listeners; `nil`: as the umask leaves them.
    package var socketMode: UInt32?
    /// Connections that the kernel queues per listener until a loop accepts them: enough for a burst of thousands, and
    /// the most that Linux allows by default (`net.core.somaxconn`).
    package var backlog = 4096
    /// Worker loops, each on a thread of its own; 0: as many as `processorCount` returns.
    package var workers = 0
    /// Hosts that are served, in lower case and without a port; others get 421 (RFC 9110 §15.5.20). Empty: all.
    package var hosts: [HostPattern] = []
    /// How long connections are still accepted after the first `SIGTERM`, while `/readyz` fails. Zero, since only a
    /// load balancer in front needs it, and every restart would take that much longer.
    package var drainDelay: Duration = .zero
    /// How long current requests may continue after that before they are aborted: less than the 60 s after which
    /// systemd kills the process (`TimeoutStopSec` of the unit).
    package var drainTimeout: Duration = .seconds(30)
    package var clients = ClientSettings()
    package var forwarding = ForwardingSettings()
    /// The changes in the fields of requests to upstreams, and of responses to clients, on all routes.
    package var requestFields = FieldChanges()
    package var responseFields = FieldChanges()
    package var coalescing = CoalescingSettings()
    package var caching = CachingSettings()
    package var purge = PurgeSettings()
    /// The tier that is shared with other machines.
    package var shared = SharedTierSettings()
    /// The first route that matches a request applies. Empty: all requests go to the first upstream.
    package var routes: [RouteSettings] = []

    package init() {}
}

/// A listener as the configuration states it.
package struct ListenerSettings: Sendable, Hashable {
    /// The address to listen on.
    package var address: SocketAddress
    /// Whether each connection begins with a PROXY header.
    package var isProxied = false
    /// Whether the clients speak TLS.
    package var isSecure = false
    /// Whether they show certificates of their own.
    package var clientCertificates = ClientCertificates.off
    /// Whether clients may speak HTTP/2: by ALPN, or by prior knowledge in the clear.
    package var speaksHTTP2 = true

    /// A listener at `address`, without TLS and the PROXY protocol.
    package init(_ address: SocketAddress) { self.address = address }
}

extension ProxySettings {
    /// The listeners, each with its own settings.
    package var listen: [ListenerSettings] {
        get {
            listeners.map {
                var listener = ListenerSettings($0)
                listener.isProxied = proxiedListeners.contains($0)
                listener.isSecure = secureListeners[$0] != nil
                listener.clientCertificates = secureListeners[$0] ?? .off
                listener.speaksHTTP2 = !listenersOfHTTP1.contains($0)
                return listener
            }
        }
        set {
            listeners = newValue.map(\.address)
            listenersOfHTTP1 = Set(newValue.filter { !$0.speaksHTTP2 }.map(\.address))
            proxiedListeners = Set(newValue.filter(\.isProxied).map(\.address))
            secureListeners = Dictionary(
                newValue.filter(\.isSecure).map { ($0.address, $0.clientCertificates) }
            ) { first, _ in first }
        }
    }
}

extension ProxySettings {
    /// The listeners with TLS, with the PROXY protocol, or without HTTP/2, by their addresses.
    package var specialListeners: [SocketAddress: ListenerSettings] {
        Dictionary(listen.filter { $0.isProxied || $0.isSecure || !$0.speaksHTTP2 }.map { ($0.address, $0) }) {
            first, _ in first
        }
    }
}

/// Limits and timeouts of client connections.
package struct ClientSettings: Sendable, Equatable {
    /// Client connections over all loops. A further one replaces the longest idle connection of its loop, or gets 503
    /// if none is idle. An idle connection costs a descriptor and a few hundred bytes.
    package var maxConnections = 20_000
    /// Connections of one address; IPv6 clients are counted by their /64. `nil`: no limit, since many people may share
    /// an address.
    package var maxConnectionsPerClient: Int?
    /// Bytes of a request head, its line included: room for large cookies; more gets 431.
    package var maxHeadSize = 32 << 10
    /// Field lines of a request, as most servers allow; more gets 431.
    package var maxFieldLines = 100
    /// Bytes of a request target, above the 8,000 that RFC 9112 §3 recommends as a minimum; more gets 414.
    package var maxTargetLength = 8 << 10
    /// Bytes of a request's content; more gets 413. `nil`: no limit, since large content is streamed.
    package var maxBodySize: Int?
    /// Bytes of a request's content that are read before the request takes a fetch slot and is sent: room for forms and
    /// API calls. Larger content is streamed. 0: all content is streamed.
    package var bodyBuffer = 64 << 10
    /// Requests on one connection before it is closed. `nil`: no limit.
    package var maxRequestsPerConnection: Int?
    /// Streams of HTTP/2 that a connection may have open (RFC 9113 §5.1.2): as RFC 9113 §6.5.2 recommends.
    package var maxStreams = 100
    /// Bytes of request content that a stream may send ahead; the connection four times as many: one window for a link of
    /// 20 Mbit/s and 100 ms.
    package var streamWindow = 256 << 10
    /// Silence after which a connection of HTTP/2 with open streams is asked for a sign of life.
    package var pingInterval: Duration = .seconds(30)
    /// How long the sign may take: more than the round trips of any network in use.
    package var pingTimeout: Duration = .seconds(15)
    /// Time from a request's first byte to the end of its head; then 408. Kept short: slow heads are an attack
    /// (slowloris).
    package var headTimeout: Duration = .seconds(10)
    /// Time between two requests of a connection: longer than the pauses in a page's burst of requests; an idle
    /// connection is cheap.
    package var idleTimeout: Duration = .seconds(60)
    /// Time without a byte of a request's content while the proxy waits for one; then 408.
    package var bodyTimeout: Duration = .seconds(30)
    /// Lowest rate of a request's content, in bytes a second: a client that sends more slowly uses up `bodyTimeout` in
    /// the end, even if it sends steadily. Below the rate of any network in use, above the rate of an attack that only
    /// holds connections (slowhttptest sends a few bytes every ten seconds). `nil`: none.
    package var minBodyRate: Int? = 100
    /// Time in which a client takes no byte of its response; then the connection is aborted.
    package var sendTimeout: Duration = .seconds(60)
    /// Time without a byte in either direction through an upgraded connection; then it is aborted. Longer than the
    /// silences of WebSocket connections in use, and the customary timeout of tunnels in proxies.
    package var tunnelTimeout: Duration = .seconds(3600)
    /// The proxies whose `X-Forwarded-For` names the client for the access log, and whose `X-Real-IP` and similar
    /// fields are forwarded. Empty by default: any client can put any address into these fields.
    package var trustedProxies: [AddressPattern] = []

    package init() {}
}

/// Fields that are added to forwarded messages, and fields that are removed from them.
package struct ForwardingSettings: Sendable, Equatable {
    /// The name in `Via` (RFC 9110 §7.6.3) and the first word of `Cache-Status`. `nil`: no `Via`, against
    /// the RFC; `CDN-Loop` and `Cache-Status` then have `programName`.
    package var viaName: String? = Self.programName
    /// `X-Forwarded-For`, `-Proto` and `-Host` on requests to upstreams.
    package var sendsXForwarded = true
    /// Whether request fields whose names have characters other than letters, digits and hyphens are forwarded. Off:
    /// some upstreams take such a name for another one.
    package var sendsOddNames = false
    /// `Cache-Status` (RFC 9211) on responses.
    package var sendsCacheStatus = true
    /// When a request gets an identifier. By default only from its client: an application that wants one for each
    /// request mostly makes it itself.
    package var requestID = RequestIDRule.pass
    /// `Proxy-Status` (RFC 9209) on responses sent in place of a failed upstream's.
    package var sendsProxyStatus = true
    /// The proxy's name where no setting gives another; also in `Cache-Status`, `Proxy-Status` and `CDN-Loop` if there
    /// is no `Via`.
    static let programName = "coalesced"

    package init() {}
}

/// The rules by which requests share one fetch.
package struct CoalescingSettings: Sendable, Equatable {
    /// Off: every miss fetches for itself.
    package var isEnabled = true
    /// Requests that wait for one operation: a burst of them, but not all connections.
    package var maxWaiters = 10_000
    /// How long a request waits for the head of a fetch it joined, or for its own fetch to begin. A leader whose fetch
    /// has begun waits as long as the fetch takes, and so does a request that gave up such a wait before.
    package var waitTimeout: Duration = .seconds(30)
    /// If the origin sends no byte of a fetch for this long, the next request starts another fetch. Shorter than the
    /// time after which the fetch fails (`UpstreamSettings.noProgressTimeout`), so that no requests queue behind it.
    package var overtakeAfter: Duration = .seconds(5)
    /// Bytes a second that a client must take of a response that is not kept whole, while other clients wait for it:
    /// half a megabit, below the rate of most networks, and high enough that a malicious client cannot hold up others
    /// for long. `nil`: none.
    package var minSharedRate: Int? = 64 << 10
    /// The action for a request that reaches one of the bounds above.
    package var whenExceeded = BoundAction.pass
    /// The action for a fetch that all its clients have left.
    package var whenLastLeaves = LastLeaveAction.finish
    /// How long a key is remembered as not shareable, from the response that proved it: common practice (Varnish's
    /// hit-for-pass), short enough to notice that an origin was mended.
    package var unshareableTTL: Duration = .seconds(120)

    package init() {}
}

/// The action for a request that reaches a bound of coalescing.
public enum BoundAction: String, Sendable, CaseIterable {
    /// A stale response when one is stored (RFC 9111 §4.2.4 permitting), else 503.
    case stale
    /// The request joins the next fetch for the same key, with all others at the bound; if that does not avoid the
    /// bound, as `stale`.
    case pass
    /// 503 with `Retry-After`.
    case unavailable = "503"
}

/// The action for a fetch that has begun and that all its clients have left. A fetch that still waits for its slot is
/// cancelled.
public enum LastLeaveAction: String, Sendable, CaseIterable {
    /// The fetch continues and its response is stored for later requests.
    case finish
    /// The fetch is aborted, which spares the origin.
    case cancel
}

/// Which responses are stored and how long they are used, if they do not say so themselves.
package struct CachingSettings: Sendable, Equatable {
    /// Off: no response is stored; fetches in flight are still shared. A route may differ.
    package var isEnabled = true
    /// The rules of storing, reusing and sharing. A route may override the rules that `RouteSettings` has. Other
    /// settings override these of its members: `writesForwarded`, `writesVia`, `forwardsSenders`, `forwardsOddNames`,
    /// `keyedFields`, `storesResponses` and `storesPostAnswers`.
    package var policy = CachingPolicy()
    /// A request with one of these cookies bypasses the cache: the origin answers it, and the response is neither
    /// shared nor stored. It marks no key, teaches no query rule and changes no stored response; nor does a stored
    /// response stand in if the origin fails, since that is the page of users without a log-in. A route may differ.
    package var passCookies: [CookiePattern] = []
    /// Cookies that are taken out of requests before anything else sees them (`RequestNormalization`). None by default:
    /// only the operator knows which cookies the origin does not need. A route may differ.
    package var strippedCookies: [CookiePattern] = []
    /// Most ranges served in one response; a request for more gets the whole representation (RFC 9110 §14.2 on many
    /// small ranges).
    package var maxRanges = 16
    /// The request to the origin when a client requests a range and no part of the representation is stored. A route
    /// may differ.
    package var rangeMisses = RangeMissRule.whole

    package init() {}
}

/// How stored responses are purged.
package struct PurgeSettings: Sendable, Equatable {
    /// The clients that may send `PURGE`. None by default: a server on the same machine, such as a TLS terminator, would
    /// send it for everybody.
    package var methodsFrom: [AddressPattern] = []
    /// Seconds for which a response may be served after a soft purge, while it is refreshed. An hour, as
    /// `CachingPolicy.staleIfUnreachable`: who purges softly would rather have old pages than waiting clients, and a
    /// page that is asked for twice in that time shows its old state once.
    package var softGrace: UInt32 = 3_600

    package init() {}
}

/// The request to the origin when a client requests a range and no part of the representation is stored.
///
/// Under both rules, a fetch of the whole that is in flight is joined, and a whole known to be too large to keep is not
/// fetched for a range (`NotSharedReason.range`). If a whole turns out to be too large, the requests whose range
/// begins far from its start are released and ask for their range: they would wait until all bytes before it have gone
/// past the other readers.
package enum RangeMissRule: String, Sendable, CaseIterable {
    /// The whole representation, once: the stored response then serves every range.
    case whole
    /// The range that the client requests, which is stored as a part: for origins of large files.
    case part
}
