import HTTPSemantics
import Proxy
import Upstream
import Yams

/// The keys of one upstream.
enum UpstreamKeys {
    static let all: [Key<UpstreamSettings>] = [
        Key(
            "name", \.name, .token, isRequired: true,
            "Its name in routes and metrics. The access log has the address of the server that was asked."),
        Key(
            "servers", \.servers, .list(of: .server, atLeast: 1), isRequired: true,
            """
            Its servers, used in turn: http://host:port, or unix:/path of a Unix socket, on which the proxy's user needs write permission. \
            They speak plain HTTP.
            """),
        Key(
            "host", \.host, .optional(.authority, "as-requested"),
            """
            The Host that they are asked for, with a port if it is not 80, where they serve several under names of their own; as-requested: what \
            the client asked for, which is also in X-Forwarded-Host. Redirections to that name lead clients past the proxy.
            """),
        Key(
            "connect-timeout", \.connectTimeout, .patience,
            "How long connecting may take; then the next address or server is tried, and after the last one the answer is 504."
        ),
        Key(
            "first-byte-timeout", \.firstByteTimeout, .patience,
            "From the request's last byte, or the latest 1xx, to the end of the response's head; then 504."),
        Key(
            "no-progress-timeout", \.noProgressTimeout, .patience,
            "How long no byte may move while a request is sent or a response arrives; then the connection is cut."),
        Key("idle-timeout", \.idleTimeout, .patience, "How long an unused connection is kept."),
        Key("max-idle-connections", \.maxIdleConnections, .integer(0...100_000), "Unused connections kept per worker."),
        Key(
            "max-concurrent-fetches", \.maxConcurrentFetches, .integer(1...1_000_000),
            """
            Slots: simultaneous fetches, over all workers. A response that is not stored, and larger than the streaming window, holds its \
            slot until its reader has taken it: allow for as many slow readers as there are. For each request whose content the origin does \
            not take yet, 256 KiB may be held in addition to storage.memory.
            """),
        Key(
            "max-queued-fetches", \.maxQueuedFetches, .integer(0...10_000_000),
            "Fetches that wait for a slot, for coalescing.wait-timeout at most; the next one gets 503."),
        Key(
            "retry-dead-connection", \.retriesDeadConnection, .flag,
            """
            A request without content is sent once more, and never a third time, if its connection is closed before a byte of the response: \
            an idempotent one on a new connection if a reused one was dead, a safe one on the next server if a new one was closed. After \
            first-byte-timeout nothing is sent again. Any request that a dead reused connection took nothing of goes out on a new one, \
            and any without content that was met there by a 408.
            """),
        Key(
            "resolve-ttl", \.resolveTTL, .duration(.seconds(1) ... .seconds(86_400)),
            """
            How long a resolved name is used before it is looked up again. Idle connections to an address that it no longer has are closed then, \
            and those in use after their response. After a reload it is looked up anew, and /etc/hosts and resolv.conf are read again.
            """),
        Key(
            "max-failures", \.maxFailures, .integer(1...1_000_000),
            "Consecutive failures, counted by each worker, after which a server is not used for a while; the log tells which, and when it is back, and so do `status` and the metrics. Where no other is left, it is asked nevertheless."
        ),
        Key(
            "failure-cooldown", \.failureCooldown, .patience,
            "How long it is not used then. After that one request tries it, and the others pass it over until it has answered; if it ends without an answer or a failure, as by its client leaving, for as long again as it took."
        ),
        Key("max-head-size", \.maxHeadSize, .size(1 << 10...16 << 20), "The largest response head; more gets 502."),
    ]

    /// A name stands for one upstream.
    @Sendable static func check(
        earlier: [UpstreamSettings], upstream: UpstreamSettings, node: Node, reader: inout Reader
    ) {
        guard !upstream.name.isEmpty, earlier.contains(where: { $0.name == upstream.name }) else { return }
        reader.note(node.position, "there is another upstream `\(upstream.name)` above; give this one another name")
    }
}

/// The keys of one route.
enum RouteKeys {
    static let all: [Key<RouteSettings>] = [
        Key("host", \.host, .optional(.host, "any"), "The host it is for, without a port, or any."),
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
                    "Which query parameters belong to the key; all are sent upstream."),
                Key("sort-query", \.key.sortsQuery, .flag, "Parameters in another order are the same request."),
                Key("headers", \.key.fields, .keyFields, "Request fields whose values belong to the key."),
                Key(
                    "cookies", \.key.cookies, .list(of: .cookieName),
                    "Cookies whose values belong to the key; if a name occurs more than once, all of its values."),
            ]),
    ]

    /// Looked up when the whole file is read.
    private static var upstreamName: ValueSyntax<String> {
        let token = ValueSyntax<String>(.token)
        return ValueSyntax(range: token.range, write: token.write) { node, name, reader in
            let upstream = token.read(node, name, &reader)
            if let upstream { reader.refer(toUpstream: upstream, at: node.position) }
            return upstream
        }
    }

    /// For the shipped file, where the list is empty.
    static let example = [
        "An example with all keys; only `upstream` is needed:",
        "routes:",
        "  - host: www.example.com               # default: any",
        "    path: /static/                      # default: /",
        "    upstream: origin",
        "    cache: false                        # default: as caching.enabled; alone, clients still share (see above)",
        "    coalesce: false                     # default: as coalescing.enabled",
        "    default-ttl: {200: 10m, 404: 1m}    # default: as caching.default-ttl",
        "    pass-cookies: [sessionid]           # default: as caching.pass-cookies",
        "    range-misses: part                  # default: as caching.range-misses",
        "    request-directives: ignore          # default: as caching.request-directives",
        "    store-post-answers: true            # default: false; for GET, as RFC 9110 9.3.3 says",
        "    key:",
        "      query: {drop: [utm_source]}       # default: all; also none, {keep: [page]}",
        "      sort-query: true                  # default: false",
        "      headers: [accept-language]        # default: []",
        "      cookies: [theme]                  # default: []",
    ]
}
