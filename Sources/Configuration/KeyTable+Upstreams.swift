import HTTPSemantics
import Routing
import Upstream
import YAML

/// The keys of one upstream.
enum UpstreamKeys {
    static let all: [Key<UpstreamSettings>] = [
        Key(
            "name", \.name, .token, isRequired: true,
            "Name used in routes and metrics. The access log shows the address of the server instead."),
        Key(
            "servers", \.servers, .list(of: .server, atLeast: 1), isRequired: true,
            """
            Servers, used round-robin: http://host:port, or unix:/path (the proxy's user needs write permission \
            on the socket). Only plain HTTP is supported. If a host name has several addresses, they are used \
            round-robin too.
            """),
        Key(
            "host", \.host, .optional(.authority, "as-requested"),
            """
            Host sent to the servers (with the port if it is not 80), for servers that use name-based virtual \
            hosts. as-requested: the client's Host, which is also sent in X-Forwarded-Host. Beware of redirects: \
            a server that redirects to this name sends clients past the proxy.
            """),
        Key(
            "connect-timeout", \.connectTimeout, .patience,
            """
            Time allowed for connecting to an address; then the next address or server is tried, and 504 is \
            returned after the last one. After 250 ms a name's next address is also tried, in parallel.
            """
        ),
        Key(
            "first-byte-timeout", \.firstByteTimeout, .patience,
            """
            Time allowed from the last byte of the request (or the latest 1xx response) to the end of the \
            response head; then 504.
            """),
        Key(
            "no-progress-timeout", \.noProgressTimeout, .patience,
            """
            Cut the connection if no byte moves for this long while a request is sent or a response is received. \
            Event streams (text/event-stream, multipart/x-mixed-replace, Incremental: ?1) may be silent for \
            clients.tunnel-timeout.
            """),
        Key(
            "idle-timeout", \.idleTimeout, .patience,
            "Close an idle connection after this long, or sooner if the origin says how long it keeps one (Keep-Alive: timeout=N): 1 s before, or a quarter of N if that is less. How soon it closes them without saying so is learnt; a request that cannot be sent twice takes only a connection idle for less than half of that."
        ),
        Key(
            "max-idle-connections", \.maxIdleConnections, .integer(0...100_000),
            "Maximum number of idle connections, per worker."),
        Key(
            "max-concurrent-fetches", \.maxConcurrentFetches, .integer(1...1_000_000),
            """
            Slots: maximum number of concurrent fetches over all workers. A response that is not stored and is \
            larger than storage.streaming-window holds its slot until its reader has taken it, so allow for the \
            expected number of slow readers. For each slot up to 256 KiB of a request body that the origin is not \
            accepting may be buffered in addition to storage.memory (twice that for a chunked body).
            """),
        Key(
            "max-queued-fetches", \.maxQueuedFetches, .integer(0...10_000_000),
            """
            Maximum number of fetches waiting for a slot (each for at most coalescing.wait-timeout); further \
            requests get 503. Of the body of a waiting request no more than 16 KiB beyond clients.body-buffer is \
            read, and only if there is memory for it.
            """),
        Key(
            "retry-dead-connection", \.retriesDeadConnection, .flag,
            """
            Retry a request without content, or a safe one whose content was read ahead (QUERY, \
            clients.body-buffer), at most once, if the connection closes before any byte of the response: an \
            idempotent request on a new connection if a reused one was dead, a safe request on the next server or \
            address if a new one was closed. Nothing is retried after first-byte-timeout. A request of which a dead \
            reused connection accepted no byte is always sent again on a new connection, as is a request without \
            content that met a 408 there.
            """),
        Key(
            "resolve-ttl", \.resolveTTL, .duration(.seconds(1) ... .seconds(86_400)),
            """
            Longest time that a resolved name is used before it is looked up again. A shorter TTL is obeyed, down \
            to 1s. If no name server answers, the known addresses stay in use for up to a day. When an address \
            disappears, its idle connections are closed at once and busy ones after their response. A reload \
            triggers a new lookup and re-reads /etc/hosts and resolv.conf.
            """),
        Key(
            "max-failures", \.maxFailures, .integer(1...1_000_000),
            """
            Take a server out of rotation after this many consecutive failures (counted by each worker \
            separately). The log, `status` and the metrics show it. A server that is the only one left is still \
            used. The same applies to each address of a name that has several; one that accepts no connection is \
            taken out at once.
            """
        ),
        Key(
            "failure-cooldown", \.failureCooldown, .patience,
            """
            How long a failed server or address stays out of rotation. Then a single request probes it, and the others keep \
            avoiding it until the probe has succeeded. A probe that ends without a verdict, for example because \
            its client left, extends this by as long as it took.
            """
        ),
        Key(
            "max-head-size", \.maxHeadSize, .size(1 << 10...16 << 20),
            "Maximum size of a response head; larger ones get 502."),
    ]
}

/// The keys of one route.
enum RouteKeys {
    static let all: [Key<RouteSettings>] = [
        Key(
            "host", \.host, .optional(.host, "any"),
            "The host it is for, without a port, or \"*.example.com\" for all names below that one, or any."),
        Key(
            "path", \.path, .absolutePath,
            "What the path begins with, as it was sent: /static matches /static/a, not /statics, /x/../static or /%73tatic."
        ),
        Key("upstream", \.upstream, upstreamName, isRequired: true, "The name of an upstream."),
        Key(
            "cache", \.isCached, .optional(.flag, "default"),
            """
            Whether responses are stored. false alone does not keep clients apart: those that ask at the same moment still share a \
            response that says nothing against it. coalesce: false ends that too.
            """),
        Key(
            "coalesce", \.isCoalesced, .optional(.flag, "default"),
            "Whether requests that come at the same moment share a fetch. false: each miss fetches for itself."),
        Key(
            "default-ttl", \.defaultLifetimes, .optional(.lifetimes, "default"),
            "How long a response is fresh that gives neither a lifetime nor Last-Modified; also by status."),
        Key(
            "set-cookie", \.setCookie, .optional(.word, "default"),
            "Whether a response with Set-Cookie may be stored and shared."),
        Key(
            "stale-while-revalidate", \.staleWhileRevalidate, .optional(.secondsUpToAYear, "default"),
            "How long a stale response may be served while it is being refreshed, if the response does not say."),
        Key(
            "stale-if-error", \.staleIfError, .optional(.secondsUpToAYear, "default"),
            "How long a stale response may be served when the origin fails, if the response does not say."),
        Key(
            "stale-if-unreachable", \.staleIfUnreachable, .optional(.secondsUpToAYear, "default"),
            "How long a stale response may be served while no origin answers at all, unless the response forbids it."),
        Key(
            "share-across-cookies", \.sharesAcrossCookies, .optional(.flag, "default"),
            "Whether a response without a lifetime goes to all who wait for it, whatever fields they sent."),
        Key(
            "pass-cookies", \.passCookies, .optional(.list(of: .cookiePattern), "default"),
            "Cookies with which a request goes past the cache."),
        Key(
            "range-misses", \.rangeMisses, .optional(.word, "default"),
            "What the origin is asked for when a client wants a range of something that is not stored."),
        Key(
            "request-directives", \.ignoredRequestDirectives, .optional(.requestDirectives, "default"),
            "Whether a client's Cache-Control counts."),
        Key(
            "store-post-answers", \.storesPostAnswers, .flag,
            "Whether an answer to POST that names a lifetime, and the target as its Content-Location, is stored for GET."
        ),
        Key(
            "key", "What makes two requests the same, beyond method, scheme, host and path.",
            [
                Key(
                    "query", \.key.query, .queryPolicy,
                    "Which query parameters belong to the key; all are sent upstream. A name may end in *: utm_* is all that begin so."
                ),
                Key("sort-query", \.key.sortsQuery, .flag, "Parameters in another order are the same request."),
                Key("headers", \.key.fields, .keyFields, "Request fields whose values belong to the key."),
                Key(
                    "cookies", \.key.cookies, .list(of: .cookieName, atMost: KeyPolicy.mostNames),
                    "Cookies whose values belong to the key; if a name occurs more than once, all of its values."),
            ]),
    ]

    /// The name of an upstream. It is looked up when the whole file has been read.
    private static var upstreamName: ValueSyntax<String> {
        let token = ValueSyntax<String>(.token)
        return ValueSyntax(range: token.range, write: token.write) { node, name, reader in
            let upstream = token.read(node, name, &reader)
            if let upstream { reader.refer(toUpstream: upstream, at: node.position) }
            return upstream
        }
    }

    /// Shown in the shipped file, where the list is empty.
    static let example = [
        "An example with all keys; only `upstream` is needed:",
        "routes:",
        "  - host: www.example.com               # default: any",
        "    path: /static/                      # default: /",
        "    upstream: origin",
        "    cache: false                        # default: as caching.enabled; alone, clients still share (see above)",
        "    coalesce: false                     # default: as coalescing.enabled",
        "    default-ttl: {200: 10m, 404: 1m}    # default: as caching.default-ttl",
        "    set-cookie: never                   # default: as caching.set-cookie",
        "    stale-while-revalidate: 1m          # default: as caching.stale-while-revalidate",
        "    stale-if-error: 1h                  # default: as caching.stale-if-error",
        "    stale-if-unreachable: 0s            # default: as caching.stale-if-unreachable",
        "    share-across-cookies: true          # default: as coalescing.share-across-cookies",
        "    pass-cookies: [sessionid]           # default: as caching.pass-cookies",
        "    range-misses: part                  # default: as caching.range-misses",
        "    request-directives: ignore          # default: as caching.request-directives",
        "    store-post-answers: true            # default: false; for later GETs (see above)",
        "    key:",
        "      query: {drop: [gclid, utm_*]}     # default: all; also none, {keep: [page]}",
        "      sort-query: true                  # default: false",
        "      headers: [accept-language]        # default: []; at most 64",
        "      cookies: [theme]                  # default: []; at most 64",
    ]
}
