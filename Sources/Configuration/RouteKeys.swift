import HTTPSemantics
import Routing
import Upstream
import YAML

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
        Key(
            "scheme", \.scheme, .optional(.scheme, "any"),
            """
            The scheme of the URL that the client asked for, or any. https: a proxy in clients.trusted-proxies says so in \
            X-Forwarded-Proto.
            """),
        Key(
            "upstream", \.upstream, upstreamName,
            "The name of an upstream. A route has one of `upstream`, `redirect` and `respond`."),
        Key(
            "redirect", \.redirect, AnswerKeys.redirect,
            """
            Answer every request with a redirect: {to: "https://${host}${target}", status: 308}. The status is 301, 302, \
            303, 307 or 308 (default). Variables in `to`: ${host} (without port), ${target} (path and query), ${path}, \
            ${query}, ${scheme}, ${client}; with one of them the answer says Cache-Control: no-store.
            """),
        Key(
            "respond", \.respond, AnswerKeys.respond,
            """
            Answer every request with this response: {status: 503, body: "back soon", type: text/plain}. file: /path in \
            place of body names a file of at most 1 MiB; its type follows from its name (text/html if not known). \
            Without both, the content is the status in words. A reload reads the file again.
            """),
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
            "ttl", \.fixedLifetimes, .optional(.fixedLifetimes, "default"),
            "How long a response is fresh, whatever it says itself (see caching.ttl); also by status, or none."),
        Key(
            "min-ttl", \.minLifetime, .optional(.secondsUpToAYear, "default"),
            "The shortest time for which a response is fresh that states a lifetime."),
        Key(
            "max-ttl", \.maxLifetime, .optional(.secondsUpToAYear, "default"),
            "The longest time for which a response is fresh, unless `ttl` says how long."),
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
            "strip-cookies", \.strippedCookies,
            .optional(.list(of: .cookiePattern, atMost: KeyPolicy.mostNames), "default"),
            "Cookies that are taken out of requests; neither the key nor the upstream sees them."),
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
            "allow", \.allow, .list(of: .addressPattern),
            """
            The clients that may use the route: addresses, blocks such as 10.0.0.0/8, or unix for every client of a \
            Unix socket; others get 403. An empty list allows all. The client is the address in the access log: a \
            trusted proxy's client counts, not the proxy (clients.trusted-proxies). A request whose path origins may \
            take for another one (//admin, /./admin, /x/../admin, /%61dmin) must be allowed by the routes of both.
            """),
        Key("deny", \.deny, .list(of: .addressPattern), "Clients that get 403, even if they are in `allow`."),
        Key(
            "rate-limit", \.rateLimit, .map("`rate-limit`", from: RateLimitSettings(), rateLimit, or: "none"),
            """
            How many requests of one client the route serves, hits included; further ones get 429 with Retry-After. \
            {rate: 20/s, burst: 40}: 20 a second (/s, /m or /h), and 40 at once; without burst as many at once as the \
            rate names, here 20. An IPv6 client is counted by its /64. {rate: 20/s, key: {header: x-api-key}} counts the values \
            of a request field instead; a request without it is not limited.
            """),
        Key(
            "request-headers", \.requestFields, .fieldChanges(of: .request),
            "Fields of requests to the upstream, after those of request-headers at the top."),
        Key(
            "response-headers", \.responseFields, .fieldChanges(of: .response),
            "Fields of responses to clients, after those of response-headers at the top."),
        Key(
            "tags", \.tagFields, .list(of: .tagField, atMost: KeyPolicy.mostNames),
            """
            Response fields that name tags, by which responses are purged together; Cache-Groups always does. Commas \
            separate the tags in Cache-Tag and X-Magento-Tags, spaces in all others.
            """),
        Key(
            "error-pages", \.errorPages, .errorPages,
            """
            Files that replace the content of responses with these statuses, whoever made them. The status and the \
            fields that do not describe the content stay. At most 1 MiB each; a reload reads them again.
            """),
        Key(
            "rewrite-location", \.rewritesLocation, .onOrOff,
            """
            Replace the scheme and host of Location and Content-Location by those that the client asked for, where they \
            name a server of the upstream or its `host`.
            """),
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
                Key(
                    "language", \.languages, .list(of: .languageTag, atMost: KeyPolicy.mostNames),
                    """
                    The site's languages. A request's Accept-Language becomes the best of them, by the look-up of RFC \
                    4647 with the client's weights (de-AT finds de), and is removed where none fits; the upstream and \
                    its Vary see only that. `headers: [accept-language]` also puts it into the key of an upstream \
                    without Vary.
                    """),
            ]),
    ]

    /// The keys that have an effect on a route with `redirect` or `respond`.
    static let ofOwnAnswers: Set<String> = [
        "host", "path", "scheme", "upstream", "redirect", "respond", "allow", "deny", "rate-limit", "response-headers",
        "error-pages",
    ]

    private static let rateLimit: [Key<RateLimitSettings>] = [
        Key("rate", \.rate, .rate, isRequired: true, "Requests in a time."),
        Key("burst", \.burst, .optional(.integer(1...1_000_000), "rate"), "Requests at once."),
        Key("key", \.field, .rateKey, "What is counted apart."),
    ]

    /// A route has an upstream or one answer of its own.
    @Sendable static func checkTarget(of route: Node, _ reader: inout Reader) {
        guard case .mapping = route else { return }
        let given = ["upstream", "redirect", "respond"].compactMap { name in
            route[name].flatMap { $0.string == "none" && name != "upstream" ? nil : $0 }
        }
        if given.isEmpty {
            reader.note(route.position, "a route needs `upstream`, `redirect` or `respond`; add one of them")
        } else if given.count > 1 {
            reader.note(
                given.map(\.position).max() ?? route.position,
                "a route has only one of `upstream`, `redirect` and `respond`; remove the others")
        }
    }

    /// The name of an upstream, or nothing. It is looked up when the whole file has been read.
    private static var upstreamName: ValueSyntax<String> {
        let token = ValueSyntax<String>(.token)
        return ValueSyntax(range: token.range, write: { $0.isEmpty ? [] : token.write($0) }) { node, name, reader in
            let upstream = token.read(node, name, &reader)
            if let upstream { reader.refer(toUpstream: upstream, at: node.position) }
            return upstream
        }
    }

    /// Shown in the shipped file, where the list is empty.
    static let example = [
        "An example with all keys. A route needs only `upstream`, or `redirect` or `respond` in its place:",
        "routes:",
        "  - host: www.example.com               # default: any",
        "    path: /static/                      # default: /",
        "    scheme: http                        # default: any",
        "    upstream: origin                    # default: none; or redirect, or respond",
        "    cache: false                        # default: as caching.enabled; alone, clients still share (see above)",
        "    coalesce: false                     # default: as coalescing.enabled",
        "    default-ttl: {200: 10m, 404: 1m}    # default: as caching.default-ttl",
        "    ttl: {200: 10m, 500: 1s}            # default: as caching.ttl; in place of what the response says",
        "    min-ttl: 10s                        # default: as caching.min-ttl",
        "    max-ttl: 1h                         # default: as caching.max-ttl",
        "    set-cookie: never                   # default: as caching.set-cookie",
        "    stale-while-revalidate: 1m          # default: as caching.stale-while-revalidate",
        "    stale-if-error: 1h                  # default: as caching.stale-if-error",
        "    stale-if-unreachable: 0s            # default: as caching.stale-if-unreachable",
        "    share-across-cookies: true          # default: as coalescing.share-across-cookies",
        "    strip-cookies: [_ga, _ga_*]         # default: as caching.strip-cookies",
        "    pass-cookies: [sessionid]           # default: as caching.pass-cookies",
        "    range-misses: part                  # default: as caching.range-misses",
        "    request-directives: ignore          # default: as caching.request-directives",
        "    store-post-answers: true            # default: false; for later GETs (see above)",
        "    allow: [10.0.0.0/8]                 # default: [], which is everybody",
        "    deny: [10.1.0.0/16]                 # default: []",
        "    rate-limit: {rate: 20/s, burst: 40} # default: none; burst: as rate, here 20; also key: {header: x-api-key}",
        "    tags: [cache-tag, x-my-tags]        # default: [cache-tag, surrogate-key, xkey, x-magento-tags]",
        "    error-pages: {502: /etc/coalesced/502.html} # default: {}",
        "    rewrite-location: on                # default: off",
        "    key:",
        "      query: {drop: [gclid, utm_*]}     # default: all; also none, {keep: [page]}",
        "      sort-query: true                  # default: false",
        "      headers: [accept-language]        # default: []; at most 64",
        "      cookies: [theme]                  # default: []; at most 64",
        "      language: [en, de, pt-BR]         # default: [], which is as sent; at most 64",
        "  - host: old.example.com",
        "    redirect: {to: \"https://www.example.com${target}\", status: 308} # default: none",
        "  - path: /shop/",
        "    respond: {status: 503, body: back soon, type: text/plain} # default: none",
    ]
}
