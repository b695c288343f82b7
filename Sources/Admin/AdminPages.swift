import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Proxy
import Routing
import Storage
import Telemetry
import Upstream

/// One response of the admin listener.
struct AdminPage: Sendable {
    var status: Status
    var contentType: StaticString = "text/plain; charset=utf-8"
    var content: ByteSlice
    /// The value of `WWW-Authenticate` (RFC 9110 §11.6.1), if the status is 401.
    var challenge: StaticString?
    /// The methods that the page accepts, if the request had another one (RFC 9110 §10.2.1).
    var allowed: StaticString?

    init(status: Status, text: String) {
        self.status = status
        content = ByteSlice(text)
    }

    init(_ contentType: StaticString, _ content: ByteBuffer) {
        status = .ok
        self.contentType = contentType
        self.content = content.copied()
    }

    /// For a request that waits when the program ends.
    static let ending = AdminPage(status: .serviceUnavailable, text: "The program is ending.\n")
    /// For a change that the program that takes the place of this one has to make.
    static func elsewhere(_ change: String) -> AdminPage {
        AdminPage(
            status: .serviceUnavailable,
            text: "Another program is taking the place of this one: send \(change) again.\n")
    }
}

/// The pages of the admin listener. Confined to the control loop.
final class AdminPages {
    private let server: ProxyServer
    private let settings: AdminSettings
    private var program: ProgramHistory
    private let loop: EventLoop
    /// Reloads, and gives the outcome to its argument; `nil` if this program does not reload.
    var onReload: ((@escaping (ReloadOutcome) -> Void) -> Void)?
    /// The pages that are being collected. Requests for such a page get the same bytes, so that many scrapers at once
    /// cost one collection. A request that comes later gets a page of its own.
    private let collections = OperationQueueManager<CollectedPage>()

    init(
        _ server: ProxyServer, _ settings: AdminSettings, version: String, on loop: EventLoop
    ) {
        self.server = server
        self.settings = settings
        program = ProgramHistory(version: version, on: loop)
        self.loop = loop
    }

    func reloaded(succeeded: Bool) { program.reloaded(succeeded: succeeded, on: loop) }

    /// Answers the requests that wait for a page or for a purge.
    func end() {
        collections.cancelAll()
        server.cancelPurges()
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
                    ? AdminPage(status: .ok, text: "ready\n")
                    : AdminPage(status: .serviceUnavailable, text: "not accepting clients\n"))
        case "/metrics" where isRead:
            collect(.metrics, for: completion)
        case "/status" where isRead:
            collect(.status, for: completion)
        case "/purge" where !settings.allowsPurging:
            completion(AdminPage(status: .forbidden, text: "Purging is disabled: admin.purge is false.\n"))
        case "/purge" where method == .post:
            purge(content, completion)
        case "/reload" where !settings.allowsPurging:
            completion(
                AdminPage(status: .forbidden, text: "Reloading is disabled here: admin.purge is false; send SIGHUP.\n"))
        case "/reload" where method == .post:
            guard let onReload else { return completion(AdminPage(ReloadOutcome(.notNow, ["there is no file"]))) }
            onReload { completion(AdminPage($0)) }
        case "/drain" where !settings.allowsPurging, "/undrain" where !settings.allowsPurging:
            completion(AdminPage(status: .forbidden, text: "Draining is disabled: admin.purge is false.\n"))
        case "/drain" where method == .post, "/undrain" where method == .post:
            drain(content, path == "/drain", completion)
        case "/healthz", "/readyz", "/metrics", "/status", "/purge", "/reload", "/drain", "/undrain":
            let changes = ["/purge", "/reload", "/drain", "/undrain"].contains(path)
            var page = AdminPage(
                status: .methodNotAllowed, text: "Use \(changes ? "POST" : "GET") for this page.\n")
            page.allowed = changes ? "POST" : "GET, HEAD"
            completion(page)
        default:
            completion(
                AdminPage(
                    status: .notFound,
                    text:
                        "Available: GET /healthz, /readyz, /metrics and /status, POST /purge with URLs, prefixes or tags, one per line, or 'all', POST /drain and /undrain with an upstream and a server of it, and POST /reload.\n"
                ))
        }
    }

    /// Purges all lines or none.
    private func purge(_ content: String, _ completion: @escaping (AdminPage) -> Void) {
        func refuse(_ reason: String) {
            completion(
                AdminPage(
                    status: .badRequest,
                    text:
                        "\(reason). Send URLs such as http://www.example.com/page, 'prefix http://www.example.com/img/' for everything below it, or 'tag NAME' for all with that tag, one per line, or just 'all'; with 'soft' as the first line, they become stale.\n"
                ))
        }
        // The lines are numbered as in an editor.
        let all = content.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(String.init)
        var numbered = all.enumerated().filter { !$0.element.isEmpty }
        var request = PurgeRequest()
        if numbered.first?.element == "soft" {
            request.isSoft = true
            numbered.removeFirst()
        }
        let lines = numbered.map(\.element)
        if lines.isEmpty { return refuse("this is empty") }
        if lines.count > AdminSettings.maxPurges { return refuse("at most \(AdminSettings.maxPurges) at a time") }
        if lines == ["all"] {
            request.isOfEverything = true
            return purge(request, PurgeRequest.summary(of: lines), completion)
        }
        for (index, line) in numbered {
            if line == "all" { return refuse("'all' stands alone, and nothing was purged") }
            guard request.add(line) else {
                return refuse(
                    lines.count == 1
                        ? "this is none of them" : "line \(index + 1) is none of them, and nothing was purged")
            }
        }
        purge(request, PurgeRequest.summary(of: lines), completion)
    }

    /// - Parameter summary: of the request's lines, for the log.
    private func purge(_ request: PurgeRequest, _ summary: String, _ completion: @escaping (AdminPage) -> Void) {
        server.purgeDesk.serve(request, summary) { answer in
            switch answer {
            case .done(let text): completion(AdminPage(status: .ok, text: "\(text)\n"))
            case .elsewhere: completion(.elsewhere("the purge"))
            case .ending: completion(.ending)
            }
        }
    }

    private func drain(_ content: String, _ isDrained: Bool, _ completion: @escaping (AdminPage) -> Void) {
        let lines = content.split(whereSeparator: \.isNewline)
        let words = lines.first?.trimmed.split(separator: " ", maxSplits: 1).map(String.init) ?? []
        guard lines.count == 1, words.count == 2 else {
            return completion(
                AdminPage(
                    status: .badRequest,
                    text:
                        "Send one line with the name of an upstream and one of its servers, such as 'app http://10.0.0.1:8000', or one address of a server's name, such as 'app 10.0.0.1:8000'.\n"
                ))
        }
        // The program that takes the place of this one would not know of it.
        guard !server.purgeDesk.isClosed else { return completion(.elsewhere("it")) }
        let request = DrainRequest(upstream: words[0], server: words[1].trimmed, isDrained: isDrained)
        server.drain(request) { answer in
            switch answer {
            case .done(let text): completion(AdminPage(status: .ok, text: "\(text)\n"))
            case .unknown(let text): completion(AdminPage(status: .notFound, text: "\(text)\n"))
            }
        }
    }

    private func collect(_ page: CollectedPage, for client: @escaping (AdminPage) -> Void) {
        let bound = LoopBound(client, on: loop)
        let waiter = Waiter<AdminPage>(on: InlineQueue.shared) { bound.value((try? $0.get()) ?? .ending) }
        let pages = LoopBound(self, on: loop)
        let enqueued = collections.enqueue(page, waiter: waiter) { Collection(page: page, pages: pages) }
        if case .refused = enqueued { client(.ending) }
    }

    /// Asks all workers for their share of `page`.
    fileprivate func collect(_ page: CollectedPage, _ completion: Completion<AdminPage>) {
        switch page {
        case .metrics:
            server.workerUsage { [self] usage in
                server.servers { [self] servers in completion.finish(.success(metrics(usage, servers))) }
            }
        case .status:
            server.servers { [self] servers in
                let report = StatusReport(server, servers, program, on: loop)
                completion.finish(.success(AdminPage("application/json", report.text)))
            }
        }
    }

    private func metrics(_ usage: WorkerUsage, _ servers: [UpstreamServers]) -> AdminPage {
        let now = server.snapshot
        let families =
            now.counters.families(upstreams: now.upstreams.map(\.name)) + usage.latencies.families() + now.accessLog
            + program.families() + servers.families() + (now.tls?.families(now.counters) ?? [])
            + now.counters.http2Families()
            + (now.tier?.families() ?? []) + [
                .gauge("client_connections_limit", "Limit of client connections.", UInt64(now.clientLimit)),
                .gauge("stored_responses", "Stored responses, counting each variant.", UInt64(now.storage.responses)),
                .gauge(
                    "stored_bytes", "Bytes used by stored responses and by notes about keys.",
                    UInt64(now.storage.bytes)),
                .gauge(
                    "in_flight_bytes",
                    "Bytes of bodies in flight, of evicted ones that are still read, and of request content read ahead.",
                    UInt64(now.inFlightBytes)),
                .gauge(
                    "memory_limit_bytes", "Limit of stored_bytes and in_flight_bytes together.", UInt64(now.memoryLimit)
                ),
                .gauge(
                    "unshareable_keys", "Keys noted as unshareable, expired notes included.",
                    UInt64(now.storage.markedKeys)),
                .counter(
                    "evictions", "Responses, and notes about keys without one, that were evicted, by queue.",
                    [
                        MetricSample([("queue", "small")], .whole(UInt64(now.storage.evictedFromSmall))),
                        MetricSample([("queue", "main")], .whole(UInt64(now.storage.evictedFromMain))),
                    ]),
                .gauge(
                    "fetches_in_flight", "Fetches running or waiting for a slot.",
                    now.upstreams.map {
                        MetricSample([("upstream", $0.name)], .whole(UInt64($0.operations.inFlight)))
                    }),
                .gauge(
                    "fetches_queued", "Fetches waiting for a slot.",
                    now.upstreams.map {
                        MetricSample([("upstream", $0.name)], .whole(UInt64($0.operations.queued)))
                    }),
                .gauge(
                    "fetches_limit", "Slots, the limit of fetches running at a time.",
                    now.upstreams.map { MetricSample([("upstream", $0.name)], .whole(UInt64($0.slots))) }),
                .gauge("workers", "Worker loops.", UInt64(now.workers)),
                .counter(
                    "worker_cpu_seconds", "Processor time of each worker, in user mode and in the kernel.",
                    usage.processorTimes.enumerated().map { index, time in
                        MetricSample([("worker", "\(index)")], .nanoseconds(time))
                    }),
                MetricFamily(
                    "worker_iteration_seconds", "Time of one iteration of a worker's event loop, without its wait.",
                    .histogram,
                    usage.iterationTimes.enumerated().map { index, times in
                        MetricSample([("worker", "\(index)")], .durations(times))
                    }),
            ]
        return AdminPage(PrometheusText.contentType, PrometheusText.page(families))
    }
}

extension PurgeRequest {
    /// Adds what a line names: a URL or a prefix, in both schemes, or a tag.
    /// - Returns: false if it names none of these.
    fileprivate mutating func add(_ line: String) -> Bool {
        func rest(after word: String) -> String? {
            line.hasPrefix(word) ? String(line.dropFirst(word.count)) : nil
        }
        if let tag = rest(after: "tag ")?.trimmed {
            guard !tag.isEmpty, tag.utf8.count <= TagFields.longestTag else { return false }
            tags.append(ByteSlice(tag))
        } else if let prefix = rest(after: "prefix ") {
            guard !prefix.contains("?"), let urls = ParsedURL.ofEachScheme(prefix) else { return false }
            prefixes += urls
        } else {
            guard let urls = ParsedURL.ofEachScheme(line) else { return false }
            self.urls += urls
        }
        return true
    }
}

extension StringProtocol {
    /// Without the spaces at both ends.
    fileprivate var trimmed: String {
        let start = drop { $0 == " " }
        return String(start.prefix(start.count - start.reversed().prefix { $0 == " " }.count))
    }
}

/// A page that all workers have a share of.
private enum CollectedPage: Hashable, Sendable { case metrics, status }

/// The collection of one page, for all requests for it that come meanwhile.
private struct Collection: Work {
    let page: CollectedPage
    let pages: LoopBound<AdminPages>

    func begin(_ completion: Completion<AdminPage>) { pages.value.collect(page, completion) }
}

extension ProgramHistory {
    /// The metric families, with the process's present use of the machine.
    fileprivate func families() -> [MetricFamily] {
        let usage = ProcessUsage()
        return [
            .gauge(
                "build_info", "Always 1; the label is the running version.",
                [MetricSample([("version", version)], .whole(1))]),
            .gauge(
                "config_last_reload_successful", "1 if the last reload succeeded, 0 if it failed and changed nothing.",
                lastReload?.succeeded ?? true ? 1 : 0),
            .gauge(
                "config_last_reload_success_timestamp_seconds",
                "Unix time at which the current settings were read.", UInt64(clamping: settingsRead)),
            .gauge(
                "process_start_time_seconds", "Unix time at which the program started.",
                UInt64(clamping: started)),
            .counter(
                "process_cpu_seconds", "Processor time, in user mode and in the kernel.",
                [MetricSample([], .nanoseconds(usage.processorTime))]),
            .gauge(
                "process_resident_memory_bytes", "Resident memory size in bytes.",
                UInt64(clamping: usage.residentBytes)),
            .gauge("process_open_fds", "Number of open file descriptors.", UInt64(clamping: usage.openDescriptors)),
            .gauge(
                "process_max_fds", "Maximum number of open file descriptors.", UInt64(clamping: usage.descriptorLimit)),
        ]
    }
}
