import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Proxy
import Storage
import Telemetry

/// One response of the admin listener.
struct AdminPage {
    var status: Status
    var contentType: StaticString = "text/plain; charset=utf-8"
    var content: ByteBuffer
    /// The methods that the page takes, if it was asked with another (RFC 9110 §10.2.1).
    var allowed: StaticString?

    init(status: Status, text: String) {
        self.status = status
        content = ByteBuffer(capacity: text.utf8.count)
        content.append(string: text)
    }

    init(_ contentType: StaticString, _ content: ByteBuffer) {
        status = .ok
        self.contentType = contentType
        self.content = content
    }
}

/// What the admin listener serves. Confined to the control loop.
final class AdminPages {
    private let server: ProxyServer
    private let version: String

    init(_ server: ProxyServer, version: String) {
        self.server = server
        self.version = version
    }

    /// `completion` is called on the loop, perhaps at once.
    func page(for method: Method, _ path: String, content: String, _ completion: @escaping (AdminPage) -> Void) {
        let isRead = method == .get || method == .head
        switch path {
        case "/healthz" where isRead:
            completion(AdminPage(status: .ok, text: "ok\n"))
        case "/readyz" where isRead:
            completion(
                server.isReady
                    ? AdminPage(status: .ok, text: "ready\n") : AdminPage(status: .serviceUnavailable, text: "not accepting clients\n"))
        case "/metrics" where isRead:
            metrics(completion)
        case "/status" where isRead:
            completion(AdminPage("application/json", StatusReport(server).text))
        case "/purge" where method == .post:
            completion(purge(content))
        case "/healthz", "/readyz", "/metrics", "/status", "/purge":
            var page = AdminPage(status: .methodNotAllowed, text: "This page takes \(path == "/purge" ? "POST" : "GET").\n")
            page.allowed = path == "/purge" ? "POST" : "GET, HEAD"
            completion(page)
        default:
            completion(AdminPage(
                status: .notFound, text: "There are /healthz, /readyz, /metrics, /status, and POST /purge with URLs, a line each, or 'all'.\n"))
        }
    }

    /// Each may walk the whole store, on this loop.
    private static let maxPurges = 100

    /// All lines or none.
    private func purge(_ content: String) -> AdminPage {
        func refused(_ reason: String) -> AdminPage {
            AdminPage(status: .badRequest, text: "Send URLs such as http://www.example.com/page, a line each, or 'all'; \(reason).\n")
        }
        // Numbered as in an editor.
        let all = content.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(String.init)
        let numbered = all.enumerated().filter { !$0.element.isEmpty }
        let lines = numbered.map(\.element)
        if lines == ["all"] { return AdminPage(status: .ok, text: Self.purged(server.purgeAll())) }
        if lines.isEmpty { return refused("this is empty") }
        if lines.count > Self.maxPurges { return refused("at most \(Self.maxPurges) at a time") }
        var urls: [ParsedURL] = []
        for (index, line) in numbered {
            if line == "all" { return refused("'all' stands alone, and nothing was purged") }
            guard let url = ParsedURL(line) else {
                return refused(lines.count == 1 ? "this is neither" : "line \(index + 1) is neither, and nothing was purged")
            }
            urls.append(url)
        }
        return AdminPage(status: .ok, text: Self.purged(urls.reduce(0) { $0 + server.purge($1) }))
    }

    private static func purged(_ count: Int) -> String {
        "purged \(count) stored response\(count == 1 ? "" : "s"); what is on its way will not be stored\n"
    }

    private func metrics(_ completion: @escaping (AdminPage) -> Void) {
        server.latencies { [server, version] latencies in
            let now = server.snapshot
            let families = now.counters.families() + latencies.families() + now.accessLog + [
                .gauge("stored_responses", "Responses stored now, all variants.", UInt64(now.storage.responses)),
                .gauge("stored_bytes", "Bytes of all that is stored.", UInt64(now.storage.bytes)),
                .gauge("in_flight_bytes", "Bytes of bodies on their way.", UInt64(now.inFlightBytes)),
                .gauge("memory_limit_bytes", "The ceiling for both.", UInt64(now.memoryLimit)),
                .gauge("unshareable_keys", "Keys remembered as not shareable.", UInt64(now.storage.markers)),
                .counter("evictions", "Responses evicted, by queue.", [
                    MetricSample([("queue", "small")], .whole(UInt64(now.storage.evictedFromSmall))),
                    MetricSample([("queue", "main")], .whole(UInt64(now.storage.evictedFromMain))),
                ]),
                MetricFamily("fetches_in_flight", "Fetches begun or waiting for a slot.", .gauge, now.upstreams.map {
                    MetricSample([("upstream", $0.name)], .whole(UInt64($0.operations.inFlight)))
                }),
                MetricFamily("fetches_queued", "Fetches that wait for a slot.", .gauge, now.upstreams.map {
                    MetricSample([("upstream", $0.name)], .whole(UInt64($0.operations.queued)))
                }),
                .gauge("workers", "Worker loops.", UInt64(now.workers)),
                .gauge("build_info", "Always 1; the label has the version that runs.", [MetricSample([("version", version)], .whole(1))]),
            ]
            completion(AdminPage(PrometheusText.contentType, PrometheusText.page(families)))
        }
    }
}
