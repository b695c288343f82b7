import Admin
import Bytes
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry
import Upstream

/// All keys of a configuration file. This is the only place for a key's name, its place in the settings, its range and
/// its meaning. Reading, checking and the shipped file all use this table.
enum KeyTable {
    static let all: [Key<Settings>] = [
        Key(
            "log-level", \.logLevel, .word,
            """
            The least severe messages that are written to the diagnostics log on standard error. With debug it also has a \
            line for each connection to an origin that is opened or closed, and says why it is closed.
            """),
        Key(
            "listen", \.proxy.listen, .listeners,
            """
            Addresses to listen on: address:port, https://address:port for TLS (see `tls`) or unix:/path. Port 0 picks a \
            free port. A reload adds and removes listeners; connections that are open stay. \
            {address: 10.0.0.5:8080, proxy-protocol: true} expects a PROXY \
            header (version 1 or 2) at the beginning of each connection, from clients.trusted-proxies only; its \
            address is then the client's. {address: 0.0.0.0:8443, tls: true, client-certificates: required} is \
            https:// for clients that have a certificate from tls.client-ca (off: they are not asked; offered: those \
            without one may connect, too). Clients may speak HTTP/2: by ALPN with TLS, by prior knowledge without; \
            http2: false leaves them HTTP/1.1.
            """),
        Key(
            "socket-mode", \.proxy.socketMode, .optional(.permissions, "umask"), isReadAtStart: true,
            """
            Permissions of the Unix sockets in `listen`; clients need write permission to connect. umask: 0777 \
            minus the umask.
            """
        ),
        Key(
            "backlog", \.proxy.backlog, .integer(1...65_535), isReadAtStart: true,
            "Length of each listener's queue of connections not yet accepted."),
        Key(
            "workers", \.proxy.workers, .workers, isReadAtStart: true,
            """
            Number of worker threads, each with its own event loop. 0: one per core that the program may use \
            (CPU affinity and cgroup CPU quota, rounded up).
            """
        ),
        Key(
            "hosts", \.proxy.hosts, .list(of: .host),
            """
            Hosts to serve; requests for others get 421. "*.example.com" is all names below that one, not itself. \
            An empty list serves every host.
            """
        ),
        Key(
            "drain-delay", \.proxy.drainDelay, .duration(.zero ... .seconds(3600)),
            """
            How long to keep accepting clients after SIGTERM, while /readyz answers 503 and responses close \
            their connections, so that a load balancer has time to notice. A second signal ends the delay.
            """),
        Key(
            "drain-timeout", \.proxy.drainTimeout, .duration(.zero ... .seconds(3600)),
            """
            How long requests in progress may take to finish after SIGTERM and drain-delay before they are cut \
            off.
            """),
        Key(
            "upgrade-timeout", \.upgradeTimeout, .duration(.milliseconds(100) ... .seconds(3600)),
            """
            How long the new program may take, after SIGUSR2, until it accepts clients; then it is ended, and the \
            old one goes on.
            """),
        Key("tls", TLSKeys.doc, TLSKeys.all),
        Key("clients", "Limits for client connections and requests.", ClientKeys.clients),
        Key(
            "forwarding", "What is added to forwarded messages, and which request fields are forwarded.",
            ClientKeys.forwarding),
        Key(
            "request-headers", \.proxy.requestFields, .fieldChanges(of: .request),
            """
            Fields of requests to upstreams: lines that take the place of all lines of their name (set), lines that \
            stand beside them (add), and names of which no line is sent (remove). A route's own rules act after \
            these. A value may have ${host}, ${target}, ${path}, ${query}, ${scheme}, ${client} and ${request-id}; \
            within braces it then needs quotes. They act last, on the request as it would be forwarded: the key and \
            pass-cookies see what the client sent. docs/rules.md has a drawing.
            """),
        Key(
            "response-headers", \.proxy.responseFields, .fieldChanges(of: .response),
            """
            Fields of responses to clients, as request-headers; also with ${status} and ${cache}. They act on all \
            responses, stored or not, errors of the proxy itself included; but on Cache-Control, Expires, Pragma and \
            caching.targeted-fields only below status 400. What this cache stores and for how long, it decides by what \
            the upstream sent. A stored response keeps the constant lines that it was stored with, until it is \
            validated or purged.
            """),
        Key("coalescing", "When concurrent requests share one fetch.", coalescing),
        Key("caching", "What is stored, and for how long if the response does not say.", caching),
        Key("purge", "How stored responses are purged.", purge),
        Key("storage", isReadAtStart: true, "Size of the in-memory cache.", storage),
        Key("shared", isReadAtStart: true, SharedTierKeys.doc, SharedTierKeys.all),
        Key(
            "upstreams", \.upstreams,
            .groups(
                "an upstream", from: UpstreamSettings(name: "", servers: []), UpstreamKeys.all, named: \.name),
            "Origins. Requests that match no route go to the first one."),
        Key(
            "routes", \.proxy.routes,
            .groups("a route", from: RouteSettings(upstream: ""), RouteKeys.all, check: RouteKeys.checkTarget),
            example: RouteKeys.example,
            """
            Which requests go to which upstream, and settings that differ for them. The first matching route is \
            used. A route with redirect or respond answers its requests itself. A path matches itself and everything below it: /static matches /static/a but not /statics; \
            /img/ matches what is below it, but not /img. Paths are compared as sent: /x/../a and /%61 do not \
            match /a. Upstreams should mark responses that \
            must never be stored with `Cache-Control: no-store`; if they do not, define routes for what may be \
            stored and set `cache: false` for the rest. `cache: false` alone stores nothing, but concurrent \
            requests that are alike (see share-across-cookies) still share a response that does not forbid it; with \
            `coalesce: false` as well, every request is forwarded as it was sent. With `store-post-answers: true`, a 200 \
            answer to POST that states a lifetime and whose Content-Location is the URL itself is stored and \
            answers later GETs.
            """),
        Key(
            "admin", "Listener for /healthz, /readyz, /metrics, /status, /purge and /reload.",
            admin),
        Key(
            "access-log", isReadAtStart: true, "One line per request; docs/observability.md describes the fields.",
            accessLog),
    ]

    /// The keys that an element of each list may have, by the name of the list.
    static let lists = [
        (name: "upstreams", keys: UpstreamKeys.all.map(\.name)), (name: "routes", keys: RouteKeys.all.map(\.name)),
    ]

    private static let coalescing: [Key<Settings>] = [
        Key("enabled", \.proxy.coalescing.isEnabled, .flag, "off: every miss makes its own fetch."),
        Key(
            "max-waiters", \.proxy.coalescing.maxWaiters, .integer(1...10_000_000),
            "Maximum number of requests waiting for, or reading, one fetch."),
        Key(
            "wait-timeout", \.proxy.coalescing.waitTimeout, .patience,
            """
            How long a request waits for the fetch it joined, or for a slot for its own fetch. A request that gave \
            up such a wait for the next fetch (when-exceeded: pass) waits as long as that one takes.
            """),
        Key(
            "overtake-after", \.proxy.coalescing.overtakeAfter, .patience,
            "If the origin has sent nothing for this long, the next request starts a new fetch instead of joining."),
        Key(
            "min-shared-rate", \.proxy.coalescing.minSharedRate, .optional(.size(16 << 10...1 << 30), "none"),
            """
            Minimum rate, in bytes per second, at which a client must read a response that others share, once \
            they wait for it. That happens only with responses too large to be stored: nothing is fetched while \
            the slowest reader is storage.streaming-window behind. A client may fall short of it by 5 s, then its \
            connection is cut, and the others go on. none: everybody waits for the slowest.
            """),
        Key(
            "when-exceeded", \.proxy.coalescing.whenExceeded, .word,
            """
            What a request gets when it reaches max-waiters or wait-timeout. pass: the next fetch, which all \
            who reach the bound share (after wait-timeout, a stale response is preferred if one may be used while \
            the origin does not answer). stale: a stale response if one may be used, otherwise 503. 503: always \
            503. If memory or the upstream's queue is full, or the fetch still waits for a slot, pass behaves like \
            stale.
            """),
        Key(
            "when-last-leaves", \.proxy.coalescing.whenLastLeaves, .word,
            """
            What to do with a fetch whose clients have all disconnected. finish: complete it for the cache. \
            cancel: abort it.
            """
        ),
        Key(
            "unshareable-ttl", \.proxy.coalescing.unshareableTTL, .duration(.zero ... .seconds(86_400)),
            """
            How long to remember that a key's responses cannot be shared, so that requests do not wait for one \
            another in vain.
            """),
        Key(
            "share-errors", \.proxy.caching.policy.sharesErrors, .flag,
            """
            Whether a 5xx response or a failed connection answers all waiting requests. off: each of them \
            retries by itself.
            """),
        Key(
            "share-across-cookies", \.proxy.caching.policy.sharesAcrossCookies, .flag,
            """
            Whether clients with different cookies or other fields, if they wait for the same URL at the same time, \
            get one response between them even if it does not say for how long it may be used again (nothing is said, max-age=0, Expires in \
            the past) or caching is off: it may be meant for one of them. off: only those get it together whose requests \
            are alike in Cookie, Accept, Accept-Language and all other fields that an origin may look at (X-Api-Key, \
            X-Requested-With), but not User-Agent and the like; docs/operating.md lists these. What says public, s-maxage, \
            stale-if-error or stale-while-revalidate always goes to all who wait; errors do as share-errors says. What \
            states a lifetime is for all as well: if it depends on such a field, the route needs `private` or Vary from \
            the origin, or the field in its key.
            """),
    ]

    private static let caching: [Key<Settings>] = [
        Key(
            "enabled", \.proxy.caching.isEnabled, .flag,
            "off: nothing is stored; concurrent requests are still coalesced."),
        Key(
            "heuristic-share", \.proxy.caching.policy.heuristicPercent, .share,
            "Lifetime of a response that states none, as a share of the time since its Last-Modified."),
        Key(
            "heuristic-limit", \.proxy.caching.policy.heuristicLimit, .secondsUpToAYear,
            "Maximum lifetime given by heuristic-share."),
        Key(
            "default-ttl", \.proxy.caching.policy.defaultLifetimes, .lifetimes,
            """
            Lifetime of a response that states none, where heuristic-share gives none either (no Last-Modified, one \
            a few seconds old or in the future, a share of 0%), and whose status may be stored without one (200, \
            203, 204, 300, 301, 308, 404, 405, 410, 501). Use it only for origins whose responses are the same for \
            everybody, preferably for single routes. In a map by status, `other` covers the statuses not named and \
            is 0s if omitted; 302 and 307 have a lifetime only if they are named, or say `public`. It may be less than a second.
            """),
        Key(
            "ttl", \.proxy.caching.policy.fixedLifetimes, .fixedLifetimes,
            """
            Lifetime of a response from its arrival, whatever it says itself: in place of its own lifetime, of no-cache \
            and of what forbids serving it stale (must-revalidate, proxy-revalidate, s-maxage). Never in place of \
            private, no-store, or the rules for Set-Cookie and Authorization. A bare 10m is for the statuses of \
            default-ttl; others, such as 302 or 500, must be named. Clients see the response's own fields. Use it only \
            for routes whose responses are the same for everybody.
            """),
        Key(
            "min-ttl", \.proxy.caching.policy.minLifetime, .secondsUpToAYear,
            """
            Shortest time for which a response that states a lifetime is fresh after it arrived; also max-age=0, unless \
            it says no-cache. For the statuses of default-ttl only.
            """),
        Key(
            "max-ttl", \.proxy.caching.policy.maxLifetime, .secondsUpToAYear,
            "Longest time for which a response is fresh after it arrived, unless `ttl` says how long."),
        Key(
            "strip-cookies", \.proxy.caching.strippedCookies,
            .list(of: .cookiePattern, atMost: KeyPolicy.mostNames),
            """
            Cookies that are taken out of requests before anything looks at them, such as those of analytics: neither \
            the key nor pass-cookies nor the upstream sees them. _ga_* is all names with that prefix; "*" is every \
            cookie. Names are compared byte for byte; at most 64.
            """),
        Key(
            "pass-cookies", \.proxy.caching.passCookies, .list(of: .cookiePattern),
            """
            Cookies, such as session cookies, that make a request bypass the cache: the upstream answers it, and \
            the response is neither shared nor stored. wordpress_logged_in_* matches all names with that prefix. \
            A cookie that some origin may take for one of these counts too, as Session.ID for session_id. \
            Responses stored before this key was set stay stored: set it, reload, then purge.
            """),
        Key(
            "set-cookie", \.proxy.caching.policy.setCookie, .word,
            """
            Whether a response with Set-Cookie may be stored and shared. public-only: only if it says \
            Cache-Control: public. never: no. always: like any other response.
            """
        ),
        Key(
            "targeted-fields", \.proxy.caching.policy.targetedFields,
            .list(of: .fieldName, atMost: KeyPolicy.mostNames),
            "Fields that take precedence over Cache-Control (RFC 9213), highest first; at most 64."),
        Key(
            "stale-while-revalidate", \.proxy.caching.policy.staleWhileRevalidate, .secondsUpToAYear,
            "How long a stale response may be served while it is being refreshed, if the response does not say."),
        Key(
            "stale-if-error", \.proxy.caching.policy.staleIfError, .secondsUpToAYear,
            "How long a stale response may be served when the origin fails, if the response does not say."),
        Key(
            "stale-if-unreachable", \.proxy.caching.policy.staleIfUnreachable, .secondsUpToAYear,
            """
            How long a stale response may be served while no origin answers at all: the connection is refused or \
            breaks, connect-timeout or first-byte-timeout expires, or the proxy may not ask because memory or the \
            upstream's queue is full (coalescing.when-exceeded). Never if the response says must-revalidate, \
            proxy-revalidate, no-cache or, unless s-maxage-forbids-stale is off, s-maxage. A malformed response \
            counts as a 502, which stale-if-error covers. The client waits until the failure is known, except \
            where stale-while-revalidate allows a stale response at once.
            """),
        Key(
            "s-maxage-forbids-stale", \.proxy.caching.policy.sharedMaxAgeForbidsStale, .flag,
            "Never serve a stale response that has s-maxage (RFC 9111 section 5.2.2.10), whatever else it says."),
        Key(
            "trust-date", \.proxy.caching.policy.trustsDate, .flag,
            "Use Date to compute a response's age. off: for an origin whose clock is wrong."),
        Key(
            "normalise-accept-encoding", \.proxy.caching.policy.normalisesAcceptEncoding, .flag,
            """
            Give clients that accept the same subset of gzip, br, zstd and deflate the same variant, regardless \
            of order and weights.
            """
        ),
        Key(
            "max-ranges", \.proxy.caching.maxRanges, .integer(0...RangeRequest.maxSpecs),
            "Maximum number of ranges in one response; requests with more get the whole representation."),
        Key(
            "range-misses", \.proxy.caching.rangeMisses, .word,
            """
            What to request from the origin when a range of an unstored response is requested. whole: the whole \
            response, once for all clients. part: only that range.
            """
        ),
        Key(
            "request-directives", \.proxy.caching.policy.ignoredRequestDirectives, .requestDirectives,
            """
            Whether Cache-Control in requests is honoured. honour: a browser's reload reaches the origin. \
            ignore: it does not.
            """),
    ]

    private static let purge: [Key<Settings>] = [
        Key(
            "methods-from", \.proxy.purge.methodsFrom, .list(of: .addressPattern),
            """
            The clients that may send PURGE, as the plug-ins of WordPress, Magento and others do: addresses, blocks \
            such as 10.0.0.0/8, or unix for every client of a Unix socket. The address is the one that the access \
            log shows. PURGE from elsewhere gets 403, and so does one with X-Forwarded-For from a proxy that is not in \
            clients.trusted-proxies; none is forwarded to the upstream.
            """),
        Key(
            "soft-grace", \.proxy.purge.softGrace, .secondsUpToAYear,
            """
            How long a response may be served after a soft purge while it is being refreshed, unless it says \
            must-revalidate or the like (s-maxage, with s-maxage-forbids-stale); more if its stale-while-revalidate is more.
            """),
    ]

    private static let storage: [Key<Settings>] = [
        Key(
            "memory", \.storage.memory, .memory,
            "Hard limit for the bodies of all responses, stored and in flight."),
        Key(
            "in-flight-share", \.storage.inUsePercent, .percent(1...100),
            """
            Share of `memory` that bodies in flight, and stored ones while clients read them, may take by evicting \
            stored responses (streamed ones an eighth of that more); they may always use free memory. No response \
            larger than this is stored.
            """
        ),
        Key(
            "max-object-size", \.storage.maxObjectSize, .size(0...1 << 40),
            """
            Maximum size of a stored response, its fields and about 1 KiB of bookkeeping included; never more than \
            in-flight-share of memory.
            """),
        Key(
            "max-variants", \.storage.maxVariants, .integer(1...4096),
            """
            Maximum number of responses stored for one URL that differ in the request fields that `Vary` names. \
            Beyond this number the least used response is removed. Storing one takes time in proportion to the \
            number already stored.
            """),
        Key(
            "streaming-window", \.storage.streamingWindow, .size(GrowingBody.smallestWindow...1 << 30),
            "For a response that is not stored: how far the fetch may run ahead of its slowest reader."),
        Key("shards", \.storage.shards, .shards, "Number of index shards, each with its own lock; a power of two."),
        Key(
            "small-queue-share", \.storage.smallQueuePercent, .percent(1...90),
            "Size of the S3-FIFO small queue (responses requested only once) as a share of the store."),
    ]

    private static let admin: [Key<Settings>] = [
        Key(
            "address", \.admin.listener, .adminListener, isReadAtStart: true,
            """
            address:port, unix:/path, or off; https://address:port for TLS with `tls.certificates`. Without `token-file`, anyone who can connect may purge and reload (only \
            requests from web pages in browsers are refused). On a loopback address, only requests whose Host is \
            an IP address, localhost or in `hosts` are answered, except for /healthz and /readyz.
            """),
        Key(
            "socket-mode", \.admin.socketMode, .permissions, isReadAtStart: true,
            "Permissions of the admin Unix socket."),
        Key(
            "hosts", \.admin.hosts, .list(of: .host),
            """
            Names in Host with which requests may ask for the admin listener, besides its address and localhost. An \
            empty list allows no other name at a loopback address, and every name elsewhere. /healthz and /readyz \
            are served under every name.
            """),
        Key(
            "token-file", \.admin.tokenFile, .optional(.file(such: "/etc/coalesced/token"), "none"),
            """
            A file with a token of at least 16 characters. Requests must then have it in Authorization: Bearer, or \
            get 401, but for /healthz and /readyz; the commands of this program take it from here. A reload reads \
            the file again.
            """),
        Key(
            "purge", \.admin.allowsPurging, .flag, isReadAtStart: true,
            "Serve POST /purge, /reload, /drain and /undrain. false: the admin listener is read-only."),
    ]

    private static let accessLog: [Key<Settings>] = [
        Key(
            "target", \.accessLog.target, .accessLogTarget,
            "off, stdout, or a path (reopened on SIGHUP and SIGUSR1)."),
        Key("format", \.accessLog.format, .format, "Format of the lines."),
        Key(
            "flush-wait", \.accessLog.flushWait, .duration(.milliseconds(10) ... .seconds(60)),
            "Maximum delay before the line of a finished request is written."),
        Key(
            "buffer", \.accessLog.batchCapacity, .size(16 << 10...1 << 30),
            """
            Memory for lines waiting to be written, per worker (up to three times as much if the disk is slow). \
            Lines that do not fit are dropped and counted.
            """
        ),
    ]
}

extension ScalarSyntax where Value == Int {
    /// The syntax of `--workers`, too.
    package static var workers: Self { integer(0...1024) }
    /// The syntax of `--memory`, too.
    package static var memory: Self { size(1 << 20...1 << 50) }
    /// A power of two, since a bit mask selects the shard.
    static var shards: Self {
        let powers = (0...12).map { 1 << $0 }
        return ScalarSyntax("a power of two", range: "1 to 4096", write: { "\($0)" }) { text in
            guard isDigits(text) else { return .malformed }
            guard let count = Int(text), powers.contains(count) else { return .outOfRange }
            return .value(count)
        }
    }
}

extension ScalarSyntax where Value == Duration {
    /// A timeout for the network. The wheel cannot distinguish times shorter than its tick, and a wait longer than a
    /// day is as good as endless.
    static var patience: Self { duration(.nanoseconds(DeadlineWheel.Settings.tick) ... .seconds(86_400)) }
}

extension ScalarSyntax where Value == LogLevel {
    /// The syntax of `--log-level`.
    package static var logLevel: Self { word }
}
