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

extension ScalarSyntax where Value == UpstreamServer {
    /// A server of an upstream: `http://host:port`, or `unix:/path`.
    package static var server: ScalarSyntax<UpstreamServer> {
        ScalarSyntax("a URL such as `http://127.0.0.1:9000`, or `unix:/path`", write: { "\($0)" }) { text in
            if text.hasPrefix("unix:") { return socket(text) }
            if text.lowercased().hasPrefix("https://") {
                return .refused(
                    "TLS to upstreams is not supported; use `http://`, through a tunnel if the network is not trusted")
            }
            guard text.lowercased().hasPrefix("http://") else { return .malformed }
            var authority = text.dropFirst(7)
            // nginx writes Unix sockets this way.
            guard !authority.hasPrefix("unix:/") else {
                return .refused("write a Unix socket without `http://`: `unix:/path`")
            }
            if authority.hasSuffix("/") { authority.removeLast() }
            guard !authority.contains(where: { "/?#".contains($0) }) else {
                return .refused("a server takes no path, since requests keep theirs; remove everything after the port")
            }
            guard !authority.contains("@") else {
                return .refused("a server takes no user name or password; remove them")
            }
            guard let (host, port) = HostSyntax.authority(authority) else { return .malformed }
            return .value(port.map { UpstreamServer(host: host, port: $0) } ?? UpstreamServer(host: host))
        }
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
