import Admin
import Bytes
import HTTPSemantics
import Libevent
import Proxy
import Storage
import Telemetry
import Upstream

/// Every key that a configuration file may have: the only place for its name, its place in the settings, its range and
/// its meaning. Files are read and checked by it, and the shipped file is made from it.
enum KeyTable {
    static let all: [Key<Settings>] = [
        Key(
            "log-level", \.logLevel, .word,
            "The least severe messages written to the diagnostics log, on standard error. There are none below info."),
        Key(
            "listen", \.proxy.listeners, .list(of: .address, atLeast: 1), isReadAtStart: true,
            "Where clients connect: addresses with ports, or unix:/path. Port 0 picks a free one."),
        Key(
            "socket-mode", \.proxy.socketMode, .optional(.permissions, "umask"), isReadAtStart: true,
            "Permissions of the Unix sockets of `listen`; connecting needs write permission. umask: what the umask leaves of 0777."
        ),
        Key(
            "backlog", \.proxy.backlog, .integer(1...65_535), isReadAtStart: true,
            "Connections the kernel holds per listener until they are accepted."),
        Key(
            "workers", \.proxy.workers, .workers, isReadAtStart: true,
            "Worker loops, a thread each; 0 is one per core that the program may use: by its affinity, and by the cpu quota of its control groups (rounded up)."
        ),
        Key(
            "hosts", \.proxy.hosts, .list(of: .host), "Hosts that are served; others get 421. An empty list serves all."
        ),
        Key(
            "drain-delay", \.proxy.drainDelay, .duration(.zero ... .seconds(3600)),
            """
            How long clients are still let in after SIGTERM, while /readyz answers 503 and responses close their connections: for a load \
            balancer in front, until it has noticed. A second signal cuts it short.
            """),
        Key(
            "drain-timeout", \.proxy.drainTimeout, .duration(.zero ... .seconds(3600)),
            "How long requests in progress may take to finish after SIGTERM and drain-delay."),
        Key("clients", "Limits on clients.", clients),
        Key("forwarding", "What is added to forwarded messages, and what of requests goes on.", forwarding),
        Key("coalescing", "When requests share a fetch.", coalescing),
        Key("caching", "What is stored, and how long it is used if the response does not say.", caching),
        Key("storage", isReadAtStart: true, "How much the in-memory cache may hold.", storage),
        Key(
            "upstreams", \.upstreams,
            .groups(
                "an upstream", from: UpstreamSettings(name: "", servers: []), UpstreamKeys.all, atLeast: 1,
                check: UpstreamKeys.check),
            "The origins. Requests that match no route go to the first one."),
        Key(
            "routes", \.proxy.routes, .groups("a route", from: RouteSettings(upstream: ""), RouteKeys.all),
            example: RouteKeys.example,
            """
            Which requests go to which upstream, and what is different for them. The first route that matches decides. A path matches \
            itself and all paths below it: /static matches /static/a, not /statics. Paths are \
            compared as they were sent: /x/../a and /%61 are not /a. Upstreams should mark what must never be stored with \
            `Cache-Control: no-store`; if they do not, make routes for what may be stored and set `cache: false` for the \
            rest. That alone stores nothing, but clients that ask at the same moment still share a response that says nothing against \
            it; `coalesce: false` ends that too, and each request is answered by the upstream, as it was sent.
            """),
        Key("admin", isReadAtStart: true, "The listener for /healthz, /readyz, /metrics, /status and /purge.", admin),
        Key(
            "access-log", isReadAtStart: true, "A line for every request; docs/observability.md explains its fields.",
            accessLog),
    ]

    /// The names of what the elements of a list are made of, by the name of the list.
    static let lists = [
        (name: "upstreams", keys: UpstreamKeys.all.map(\.name)), (name: "routes", keys: RouteKeys.all.map(\.name)),
    ]

    private static let clients: [Key<Settings>] = [
        Key(
            "max-connections", \.proxy.clients.maxConnections, .integer(1...10_000_000),
            """
            Simultaneous client connections. For the next one, the one that has been idle for longest is closed (of the same worker); if none \
            has been idle for a second, it gets 503. The limit of open files may leave room for fewer: `coalesced status` says for how many, and a notice at the start if this \
            is not the default.
            """),
        Key(
            "max-head-size", \.proxy.clients.maxHeadSize, .size(1 << 10...1 << 20),
            "The largest request head; more gets 431."),
        Key(
            "max-field-lines", \.proxy.clients.maxFieldLines, .integer(1...1000),
            "The most field lines in a request; more gets 431."),
        Key(
            "max-target-length", \.proxy.clients.maxTargetLength, .size(64...1 << 20),
            "The longest request target; more gets 414."),
        Key(
            "max-body-size", \.proxy.clients.maxBodySize, .optional(.size(0...1 << 50), "none"),
            "The largest request body; more gets 413. What is larger than body-buffer streams through and is never held whole."
        ),
        Key(
            "body-buffer", \.proxy.clients.bodyBuffer, .size(0...1 << 30),
            """
            The largest request body that is read before the request takes a slot and is sent, so that a slow client holds neither a slot nor \
            the upstream. Such a request is answered 100 by the proxy if it expects that. It counts as a body in flight; all of them take half \
            of in-flight-share at most, and beyond that bodies stream. Larger ones stream from the start, or, if their length is not known, from \
            this size on. 0B: all stream.
            """),
        Key(
            "max-requests-per-connection", \.proxy.clients.maxRequestsPerConnection,
            .optional(.integer(1...1_000_000_000), "none"),
            "Requests on one connection before it is closed."),
        Key(
            "head-timeout", \.proxy.clients.headTimeout, .patience,
            "From the first byte of a request to the end of its head; then 408."),
        Key(
            "idle-timeout", \.proxy.clients.idleTimeout, .patience,
            "How long a connection is kept open without a request."),
        Key("body-timeout", \.proxy.clients.bodyTimeout, .patience, "How long a request body may stall; then 408."),
        Key(
            "min-body-rate", \.proxy.clients.minBodyRate, .optional(.size(1...1 << 20), "none"),
            """
            How much of a request body must come in a second: what comes gives the client so much more time, up to body-timeout. A slower one \
            gets 408 once body-timeout is used up, however steadily it sends. none: any byte gives the whole of body-timeout.
            """),
        Key(
            "send-timeout", \.proxy.clients.sendTimeout, .patience,
            "How long a client may accept no byte of its response; then the connection is cut."),
        Key(
            "tunnel-timeout", \.proxy.clients.tunnelTimeout, .patience,
            "How long an upgraded connection, such as a WebSocket, may carry no byte either way; then it is cut."),
        Key(
            "trusted-proxies", \.proxy.clients.trustedProxies, .list(of: .trustedProxy),
            """
            Proxies in front of this one, such as a TLS terminator: addresses, blocks such as 10.0.0.0/8, or unix for all who \
            connect by a Unix socket. For a request from one of them the access log names the last address in X-Forwarded-For that \
            is not one of theirs; and what it says of its client in X-Real-IP, True-Client-IP, CF-Connecting-IP and so on goes to \
            the upstream, as nobody else's does. If its last word in X-Forwarded-Proto is https (or wss, as some say of \
            a WebSocket), the request is one for an https URL: the upstream is told so, and responses are stored apart from those \
            to http. Have it set that field itself. A change counts for new connections.
            """),
    ]

    private static let forwarding: [Key<Settings>] = [
        Key(
            "via", \.proxy.forwarding.viaName, .optional(.viaName, "off"),
            "The name in Via (RFC 9110 7.6.3), CDN-Loop and Cache-Status. Off: no Via; loops are still detected by CDN-Loop."
        ),
        Key(
            "x-forwarded", \.proxy.forwarding.sendsXForwarded, .flag,
            """
            X-Forwarded-For, -Proto and -Host on requests to upstreams. The client's address is added to the X-Forwarded-For that \
            came with the request; a client on a Unix socket has none, and nothing is added. A response that varies by this field \
            is not shared. Other such fields from a client are not forwarded (docs/decisions.md lists them): -Proto (unless from \
            clients.trusted-proxies), -Host, Forwarded, X-Host, X-Original-URL and so on, X-Real-IP and so on (unless from \
            clients.trusted-proxies), and X-HTTP-Method-Override with GET and HEAD. Upstreams build links and paths from them, \
            which other clients would get. Fields in the route's key are the exception.
            """),
        Key(
            "odd-field-names", \.proxy.forwarding.sendsOddNames, .flag,
            """
            Request fields whose names hold other characters than letters, digits and hyphens go to upstreams. Off: they do not, since many \
            programs take X_Tenant for X-Tenant (CGI, WSGI, Rack, PHP), and clients could tell them what the key and Vary do not see. On: such a \
            field is in the key where the one that it may be taken for is, and chooses the variant with it. Trailers with such names never go on.
            """),
        Key("cache-status", \.proxy.forwarding.sendsCacheStatus, .flag, "Cache-Status (RFC 9211) on responses."),
        Key(
            "proxy-status", \.proxy.forwarding.sendsProxyStatus, .flag,
            "Proxy-Status (RFC 9209) on the proxy's own responses for a failed upstream."),
    ]

    private static let coalescing: [Key<Settings>] = [
        Key("enabled", \.proxy.coalescing.isEnabled, .flag, "Off: every miss fetches for itself."),
        Key(
            "max-waiters", \.proxy.coalescing.maxWaiters, .integer(1...10_000_000),
            "The most requests that wait for one fetch."),
        Key(
            "wait-timeout", \.proxy.coalescing.waitTimeout, .patience,
            "How long a request waits for a fetch that it joined, or for its own fetch to get a slot."),
        Key(
            "overtake-after", \.proxy.coalescing.overtakeAfter, .patience,
            "If no byte comes from the origin for this long, the fetch is overtaken: the next request starts another."),
        Key(
            "when-exceeded", \.proxy.coalescing.whenExceeded, .word,
            """
            What a request gets when it reaches one of these bounds. pass: a fetch of its own; but after wait-timeout rather a \
            stale response, where one may be used while the origin does not answer. stale: a stale response where one may be used, \
            else 503. 503: always 503. If the memory or the upstream's queue is full, pass does what stale does.
            """),
        Key(
            "when-last-leaves", \.proxy.coalescing.whenLastLeaves, .word,
            "What happens to a fetch that has begun when all its clients have left: it is finished for the store, or cancelled."
        ),
        Key(
            "unshareable-ttl", \.proxy.coalescing.unshareableTTL, .duration(.zero ... .seconds(86_400)),
            "How long a key is remembered as not shareable, so that no request waits in vain again."),
        Key(
            "share-errors", \.proxy.caching.policy.sharesErrors, .flag,
            "A 5xx or a failed connection answers all waiting requests. Off: each of them tries on its own."),
        Key(
            "share-across-cookies", \.proxy.caching.policy.sharesAcrossCookies, .flag,
            """
            Requests with different cookies share a response that has no lifetime (nothing is said, max-age=0, Expires in the \
            past) and is not public. Off: those with the same Cookie field share it, and those without one.
            """),
    ]

    private static let caching: [Key<Settings>] = [
        Key(
            "enabled", \.proxy.caching.isEnabled, .flag, "Off: nothing is stored; requests in flight are still shared."),
        Key(
            "heuristic-share", \.proxy.caching.policy.heuristicPercent, .share,
            "How long a response is fresh if it does not say, as a share of the time since Last-Modified."),
        Key(
            "heuristic-limit", \.proxy.caching.policy.heuristicLimit, .secondsUpToAYear,
            "The longest such time."),
        Key(
            "default-ttl", \.proxy.caching.policy.defaultLifetimes, .lifetimes,
            """
            How long a response is fresh that gives neither a lifetime nor Last-Modified, if its status may be stored without one: 200, 203, \
            204, 300, 301, 308, 404, 405, 410, 414, 501. Only for origins whose responses are the same for everybody; rather set it for a \
            route. Where some statuses are named, other is what the rest has, 0s if it is left out.
            """),
        Key(
            "pass-cookies", \.proxy.caching.passCookies, .list(of: .cookiePattern),
            """
            Cookies, such as that of a session, with which a request goes past the cache: the upstream answers it alone, and the answer is \
            neither shared nor stored. wordpress_logged_in_* means all names that begin so. Upper and lower case differ. \
            What such requests brought before the key was there stays stored: add it, reload, then purge.
            """),
        Key(
            "set-cookie", \.proxy.caching.policy.setCookie, .word,
            "public-only: a response with Set-Cookie is stored and shared if it says Cache-Control: public. never: it is not. always: it is treated like any other."
        ),
        Key(
            "targeted-fields", \.proxy.caching.policy.targetedFields, .list(of: .fieldName),
            "Fields that replace Cache-Control (RFC 9213), in order of precedence."),
        Key(
            "stale-while-revalidate", \.proxy.caching.policy.staleWhileRevalidate, .secondsUpToAYear,
            "How long a stale response is served while it is refreshed, if the response does not say."),
        Key(
            "stale-if-error", \.proxy.caching.policy.staleIfError, .secondsUpToAYear,
            "How long a stale response is served while the origin fails, if the response does not say."),
        Key(
            "stale-if-unreachable", \.proxy.caching.policy.staleIfUnreachable, .secondsUpToAYear,
            """
            How long a stale response is served while no origin answers at all, unless the response forbids it. No answer means: \
            the connection is refused or breaks, or connect-timeout or first-byte-timeout of the upstream has passed; or the proxy \
            may not ask, since the memory or the upstream's queue is full (coalescing.when-exceeded). What is not a valid response \
            counts as a 502, for which stale-if-error is. The client waits until then; where stale-while-revalidate applies, it gets the stale response at once.
            """),
        Key(
            "s-maxage-forbids-stale", \.proxy.caching.policy.sharedMaxAgeForbidsStale, .flag,
            "A response with s-maxage is never served stale (RFC 9111 5.2.2.10), whatever else it says."),
        Key(
            "trust-date", \.proxy.caching.policy.trustsDate, .flag,
            "Count the time since Date as age. Off: for an origin whose clock is wrong."),
        Key(
            "normalise-accept-encoding", \.proxy.caching.policy.normalisesAcceptEncoding, .flag,
            "Clients that accept the same codings of gzip, br, zstd and deflate share a variant, whatever their order and weights."
        ),
        Key(
            "max-ranges", \.proxy.caching.maxRanges, .integer(0...RangeRequest.maxSpecs),
            "Ranges served in one response; more gets the whole."),
        Key(
            "range-misses", \.proxy.caching.rangeMisses, .word,
            "What the origin is asked for when a client wants a range of something that is not stored: the whole, once for all clients, or only that part."
        ),
        Key(
            "request-directives", \.proxy.caching.policy.ignoredRequestDirectives, .requestDirectives,
            "Whether a client's Cache-Control counts. honour: a browser's reload reaches the origin."),
    ]

    private static let storage: [Key<Settings>] = [
        Key(
            "memory", \.storage.memory, .memory,
            "All bodies together, stored or in flight: a hard ceiling."),
        Key(
            "in-flight-share", \.storage.inFlightPercent, .percent(1...100),
            "How much of it bodies in flight may take from what is stored; they may also use what is free. No larger response is stored."
        ),
        Key(
            "max-object-size", \.storage.maxObjectSize, .size(0...1 << 40),
            "The largest response that is stored; never more than in-flight-share of memory."),
        Key(
            "streaming-window", \.storage.streamingWindow, .size(GrowingBody.smallestWindow...1 << 30),
            "How much of a response that is not stored may wait for its slowest reader."),
        Key("shards", \.storage.shards, .shards, "Parts of the index, each under its own lock; a power of two."),
        Key(
            "small-queue-share", \.storage.smallQueuePercent, .percent(1...90),
            "Share of the S3-FIFO queue for what was requested once."),
    ]

    private static let admin: [Key<Settings>] = [
        Key(
            "address", \.admin.address, .adminAddress,
            """
            An address with a port, unix:/path, or off. Anyone who can connect to it may purge; only requests from web pages in a browser \
            are refused. On a loopback address it answers only requests whose Host is an address or localhost.
            """),
        Key("socket-mode", \.admin.socketMode, .permissions, "Permissions of a Unix socket."),
        Key(
            "purge", \.admin.allowsPurging, .flag,
            "Whether POST /purge is served. With false, whoever can connect may only read."),
    ]

    private static let accessLog: [Key<Settings>] = [
        Key(
            "target", \.accessLog.target, .accessLogTarget,
            "off, stdout, or a path (opened again on SIGHUP and SIGUSR1)."),
        Key("format", \.accessLog.format, .format, "How a line looks."),
        Key(
            "flush-wait", \.accessLog.flushWait, .duration(.milliseconds(10) ... .seconds(60)),
            "The longest time until the line of a finished request is written."),
        Key(
            "buffer", \.accessLog.batchCapacity, .size(16 << 10...1 << 30),
            "Memory for lines waiting to be written, per worker; lines that do not fit are dropped and counted. With a slow disk, up to three times as much is used."
        ),
    ]
}

extension ScalarSyntax where Value == Int {
    /// Also for `--workers`.
    public static var workers: Self { integer(0...1024) }
    /// Also for `--memory`.
    public static var memory: Self { size(1 << 20...1 << 50) }
    /// A power of two: the shard is picked by a mask.
    static var shards: Self {
        let powers = (0...12).map { 1 << $0 }
        return ScalarSyntax("a power of two", range: "1 to 4096", write: { "\($0)" }) { text in
            Int(text).map { powers.contains($0) ? .value($0) : .outOfRange } ?? .malformed
        }
    }
}

extension ScalarSyntax where Value == Duration {
    /// What is worth waiting on a network: the wheel tells no times apart that are shorter than its tick, and anything
    /// longer is forever.
    static var patience: Self { duration(.nanoseconds(DeadlineWheel.Settings.tick) ... .seconds(86_400)) }
}

extension ScalarSyntax where Value == LogLevel {
    /// For `--log-level`.
    public static var logLevel: Self { word }
}
