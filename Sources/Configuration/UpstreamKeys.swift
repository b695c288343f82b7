import HTTPSemantics
import Libevent
import Routing
package import Upstream
import YAML

/// The keys of one upstream.
enum UpstreamKeys {
    static let all: [Key<UpstreamSettings>] = [
        Key(
            "name", \.name, .token, isRequired: true,
            "Name used in routes and metrics. The access log shows the address of the server instead."),
        Key(
            "servers", \.servers, .servers, isRequired: true,
            """
            Servers: http://host:port, https://host:port (see `tls`), or unix:/path (the proxy's user needs write \
            permission on the socket). {url: http://host:port, weight: 2} gets twice as many requests as one without a \
            weight (1 to 1000); {url: http://host:port, backup: true} is asked only while none of the others can be \
            used. If a host name has several addresses, each is a server of its own with that weight.
            """),
        Key(
            "balance", \.balance, .word,
            """
            How the servers share the requests. round-robin: in turn, by their weights. least-requests: each request \
            goes to the less busy of two servers chosen at random (requests in flight for its weight, times how long \
            a response took there lately). hash: each key of the cache has a server of its own; if a server is lost, \
            only its keys move.
            """),
        Key("tls", \.tls, UpstreamTLSKeys.tls, UpstreamTLSKeys.doc),
        Key("health", \.health, FailureKeys.health, FailureKeys.healthDoc),
        Key("retry", \.retry, FailureKeys.retry, FailureKeys.retryDoc),
        Key(
            "slow-start", \.slowStart, .duration(.zero ... .seconds(3600)),
            """
            How long the share of a server that is back in use grows, from a tenth of its weight to the whole. 0s: \
            the whole at once.
            """),
        Key(
            "resume", \.resume, .integer(0...100),
            """
            How often the rest of a response is asked for that breaks off on its way, by Range and If-Range, on the \
            same server or another; no client notices. It must be a 200 to GET, or a range that the proxy asked for, \
            with a strong ETag and without Accept-Ranges: none, and its rest must have the same ETag, Last-Modified, \
            Content-Type, Content-Encoding and total length. Otherwise, and with 0, clients are cut off as the origin \
            cut.
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
            Time allowed for connecting to an address; then the next server is tried. After the last one the client \
            gets 503; 504 if there is only one. After 250 ms a name's next address is also tried, in parallel.
            """
        ),
        Key(
            "first-byte-timeout", \.firstByteTimeout, .patience,
            """
            Time allowed from the last byte of the request (or the latest 1xx response) to the end of the \
            response head; then another server may be asked (`retry`), or the client gets 504.
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
            Send an idempotent request without content, or a safe one whose content was read ahead (QUERY, \
            clients.body-buffer), once more on a new connection if a reused one is closed before any byte of the \
            response. Also any request of which the reused connection took no byte, and one without content that met \
            a 408 there. What failed on a new connection is for `retry`.
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
            Failures in a row, counted over all workers, after which a server gets no requests for a while (is \
            ejected): no connection, a timeout, a connection closed before the response, a malformed response, a \
            status in retry.on. A server is ejected too if at least a quarter of 20 or more requests failed within \
            10 s, and three times as many in proportion as on the other servers. Of servers that take connections, and are \
            not drained or down by checks, at most half are ejected at a time, so never the only one. Each address of a name is a server here. The log, \
            `status` and the metrics show it.
            """
        ),
        Key(
            "failure-cooldown", \.failureCooldown, .patience,
            """
            How long a server is ejected. Then it is probed with the copy of a safe request, for which no client \
            waits, or with a request itself if no other server is in use or none can be copied; the others keep \
            avoiding it until the probe has succeeded. The next ejection lasts twice as long, up to 5m (or this, if \
            it is longer); once the server was in use for as long as it was last ejected, the time is this again. \
            Retry-After in the response that failed may prolong it within that bound; successful checks (`health`) \
            end it. A probe that ends without a verdict, for example because its client left, extends it by as long as the probe took.
            """
        ),
        Key(
            "max-head-size", \.maxHeadSize, .size(1 << 10...16 << 20),
            "Maximum size of a response head; larger ones get 502."),
    ]
}

extension ScalarSyntax where Value == UpstreamServer {
    /// A server of an upstream: `http://host:port`, `https://host:port`, or `unix:/path`.
    package static var server: ScalarSyntax<UpstreamServer> {
        ScalarSyntax("a URL such as `http://127.0.0.1:9000`, or `unix:/path`", write: write) { text in
            if text.hasPrefix("unix:") { return socket(text) }
            guard let scheme = ["http://", "https://"].first(where: { text.lowercased().hasPrefix($0) }) else {
                return .malformed
            }
            var authority = text.dropFirst(scheme.count)
            // nginx writes Unix sockets this way.
            guard !authority.hasPrefix("unix:/") else {
                return .refused("write a Unix socket without `\(scheme)`: `unix:/path`")
            }
            if authority.hasSuffix("/") { authority.removeLast() }
            guard !authority.contains(where: { "/?#".contains($0) }) else {
                return .refused("a server takes no path, since requests keep theirs; remove everything after the port")
            }
            guard !authority.contains("@") else {
                return .refused("a server takes no user name or password; remove them")
            }
            guard let (host, port) = HostSyntax.authority(authority) else { return .malformed }
            let isSecure = scheme == "https://"
            var server = UpstreamServer(host: host, port: port ?? (isSecure ? 443 : 80))
            server.isSecure = isSecure
            return .value(server)
        }
    }

    @Sendable private static func write(_ server: UpstreamServer) -> String {
        server.isSecure ? "https://\(server.hostAndPort)" : "\(server)"
    }

    private static func socket(_ text: String) -> Parsed {
        // A line feed in the path would end a line of the log.
        let isText = !text.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F || $0 == "\u{FFFD}" }
        guard isText, let address = try? SocketAddress(parsing: text), case .unix(let path) = address,
            path.hasPrefix("/"), path != "/"
        else {
            return .refused(
                "the path of a Unix socket begins with `/`, has at most \(SocketAddress.longestPath) bytes, no control characters, "
                    + "and is UTF-8; give one such as `unix:/run/app.sock`")
        }
        return .value(.unix(path: path))
    }
}
