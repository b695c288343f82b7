import Routing

/// The keys for serving clients, and for forwarding their messages.
enum ClientKeys {
    static let clients: [Key<Settings>] = [
        Key(
            "max-connections", \.proxy.clients.maxConnections, .integer(1...10_000_000),
            """
            Maximum number of client connections. When it is reached, a new connection replaces the one that has \
            been idle longest on the same worker; if none has been idle for at least a second, it gets 503. The \
            open-file limit may allow fewer: `coalesced status` shows how many, and so does a notice at startup \
            if this key is in the file or fewer than 2000 are allowed.
            """),
        Key(
            "max-connections-per-client", \.proxy.clients.maxConnectionsPerClient,
            .optional(.integer(1...1_000_000), "none"),
            """
            Maximum number of connections of one client; further ones get 429. IPv6 clients are counted by their \
            /64. Trusted proxies and clients of Unix sockets are not counted. A change applies to new connections.
            """),
        Key(
            "max-head-size", \.proxy.clients.maxHeadSize, .size(1 << 10...1 << 20),
            "Maximum size of a request head; larger requests get 431."),
        Key(
            "max-field-lines", \.proxy.clients.maxFieldLines, .integer(1...1000),
            "Maximum number of field lines in a request; requests with more get 431."),
        Key(
            "max-target-length", \.proxy.clients.maxTargetLength, .size(64...1 << 20),
            "Maximum length of a request target; longer ones get 414."),
        Key(
            "max-body-size", \.proxy.clients.maxBodySize, .optional(.size(0...1 << 50), "none"),
            """
            Maximum size of a request body; larger ones get 413, or are cut off if their response has begun. A body \
            larger than body-buffer is streamed, never held whole.
            """
        ),
        Key(
            "body-buffer", \.proxy.clients.bodyBuffer, .size(0...1 << 30),
            """
            Request bodies up to this size are read completely before the request takes a slot and is sent, so \
            that a slow client occupies neither a slot nor the origin. The proxy itself answers 100 to such a \
            request if the client expects it. Memory for them counts as bodies in flight and is limited to half \
            of in-flight-share; beyond that, bodies are streamed. Larger bodies are streamed from the start or, \
            if their length is unknown, once this much has arrived. 0B: stream all bodies.
            """),
        Key(
            "max-requests-per-connection", \.proxy.clients.maxRequestsPerConnection,
            .optional(.integer(1...1_000_000_000), "none"),
            "Close a connection after this many requests."),
        Key(
            "max-streams", \.proxy.clients.maxStreams, .integer(1...1000),
            """
            Maximum number of requests at a time on one connection of HTTP/2; further ones are refused. A change applies to new \
            connections.
            """),
        Key(
            "stream-window", \.proxy.clients.streamWindow, .size(16 << 10...16 << 20),
            """
            Bytes of a request body that a client of HTTP/2 may send ahead of what the upstream has taken; all streams of \
            a connection together four times as many.
            """),
        Key(
            "ping-interval", \.proxy.clients.pingInterval, .patience,
            "Send a PING to a client of HTTP/2 that waits for responses and has sent nothing for this long."),
        Key(
            "ping-timeout", \.proxy.clients.pingTimeout, .patience,
            "Cut a connection whose client has not answered a PING for this long."),
        Key(
            "head-timeout", \.proxy.clients.headTimeout, .patience,
            "Time allowed from the first byte of a request to the end of its head; then 408."),
        Key(
            "idle-timeout", \.proxy.clients.idleTimeout, .patience,
            "Close a connection after this long without a request."),
        Key(
            "body-timeout", \.proxy.clients.bodyTimeout, .patience,
            "Longest pause between two bytes of a request body; then 408."),
        Key(
            "min-body-rate", \.proxy.clients.minBodyRate, .optional(.size(1...1 << 20), "none"),
            """
            Minimum rate of a request body, in bytes per second: every byte that arrives extends the client's \
            time accordingly, up to body-timeout. A slower client gets 408 once that time is used up, however \
            steadily it sends. none: every byte resets body-timeout.
            """),
        Key(
            "send-timeout", \.proxy.clients.sendTimeout, .patience,
            "Cut a connection whose client has accepted no byte of its response for this long."),
        Key(
            "tunnel-timeout", \.proxy.clients.tunnelTimeout, .patience,
            """
            Cut an upgraded connection, such as a WebSocket, that has carried no byte in either direction for \
            this long; and an event stream of which nothing has come for this long (see no-progress-timeout).
            """),
        Key(
            "trusted-proxies", \.proxy.clients.trustedProxies, .list(of: .addressPattern),
            """
            Proxies in front of this one, such as a TLS terminator: addresses, blocks such as 10.0.0.0/8, or \
            unix for every client of a Unix socket. For their requests: (1) the access log shows the last \
            address in X-Forwarded-For that is not itself trusted; (2) X-Real-IP, True-Client-IP, \
            CF-Connecting-IP and similar fields are forwarded to the upstream, which they are not for other \
            clients; (3) if the last value of X-Forwarded-Proto is https (or wss, which some send for a \
            WebSocket), the request is treated as one for an https URL: the upstream is told so, and its \
            responses are stored separately from those for http. Make sure that the proxy sets X-Forwarded-Proto \
            itself. A change applies to new connections.
            """),
    ]

    static let forwarding: [Key<Settings>] = [
        Key(
            "via", \.proxy.forwarding.viaName, .optional(.viaName, "off"),
            """
            The proxy's name in Via (RFC 9110 section 7.6.3), CDN-Loop and Cache-Status. off: send no Via; loops \
            are still detected through CDN-Loop.
            """
        ),
        Key(
            "x-forwarded", \.proxy.forwarding.sendsXForwarded, .flag,
            """
            Send X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host to upstreams. The client's address is \
            appended to X-Forwarded-For (not for clients of a Unix socket, which have none); a response that \
            varies by that field is not shared. Because upstreams build links and paths from them, which other \
            clients would then receive from the cache, the following fields of a client are removed: \
            X-Forwarded-Proto and X-Real-IP and the like (except from clients.trusted-proxies), \
            X-Forwarded-Host, -Port and -Prefix, Forwarded, X-Host, X-Original-URL and the like, and \
            X-HTTP-Method-Override on GET and HEAD. Fields named in the route's key are kept. docs/operating.md \
            has the full list; the diagnostics log tells once, for each network of peers, of each that is removed.
            """),
        Key(
            "odd-field-names", \.proxy.forwarding.sendsOddNames, .flag,
            """
            Forward request fields whose names contain characters other than letters, digits and hyphens. Off by \
            default because many programs (CGI, WSGI, Rack, PHP) treat X_Tenant and X-Tenant as the same field, \
            so that a client could send them a value that neither the key nor Vary sees. If on, such a field is \
            part of the key and of variant selection wherever the field it may be mistaken for is. Trailer \
            fields with such names are never forwarded.
            """),
        Key(
            "request-id", \.proxy.forwarding.requestID, .word,
            """
            pass: forward the client's X-Request-Id. make: a request without one gets one, of 32 hexadecimal digits. \
            With either, one that has other characters than letters, digits, `.`, `_` and `-`, or more than 128 of \
            them, is replaced by a new one, and a request gets one where a rule of its route uses ${request-id}.
            """),
        Key("cache-status", \.proxy.forwarding.sendsCacheStatus, .flag, "Add Cache-Status (RFC 9211) to responses."),
        Key(
            "proxy-status", \.proxy.forwarding.sendsProxyStatus, .flag,
            "Add Proxy-Status (RFC 9209) to the proxy's own error responses when an upstream fails."),
    ]
}
