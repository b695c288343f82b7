/// What a scenario sets differently from the defaults. The only place of the tests that knows how the configuration
/// file, the metrics and the access log spell things.
enum Setting: Sendable {
    case workers(Int)
    case drainTimeout(Duration)
    case hosts([String])

    case maxConnections(Int)
    case maxHeadSize(Int)
    case maxBodySize(Int)
    case headTimeout(Duration)
    case idleTimeout(Duration)
    case bodyTimeout(Duration)
    case bodyBuffer(Int)
    /// Bytes a second.
    case minBodyRate(Int)
    case sendTimeout(Duration)
    case tunnelTimeout(Duration)

    case maxWaiters(Int)
    case waitTimeout(Duration)
    case overtakeAfter(Duration)
    /// `pass`, `stale` or `503`.
    case whenExceeded(String)
    case unshareableTTL(Duration)
    /// `finish` or `cancel`.
    case whenLastLeaves(String)

    case memory(mebibytes: Int)
    case maxObjectSize(Int)
    case staleIfError(Duration)
    /// `whole` or `part`.
    case rangeMisses(String)

    case connectTimeout(Duration)
    case firstByteTimeout(Duration)
    case noProgressTimeout(Duration)
    case maxConcurrentFetches(Int)
    case maxQueuedFetches(Int)
    case maxFailures(Int)
    case failureCooldown(Duration)
    case resume(Int)

    /// Any other key, as it stands in the file.
    case other(section: String, key: String, value: String)
    /// One route, which stores answers to POST.
    case storesPostAnswers

    /// JSON lines to `access.log` in the program's folder, soon written.
    case accessLog

    /// Section, key and value in the file.
    var entry: (section: String, key: String, value: String) {
        switch self {
        case .workers(let count): ("", "workers", "\(count)")
        case .drainTimeout(let time): ("", "drain-timeout", time.inFile)
        case .hosts(let names): ("", "hosts", "[\(names.joined(separator: ", "))]")
        case .maxConnections(let count): ("clients", "max-connections", "\(count)")
        case .maxHeadSize(let bytes): ("clients", "max-head-size", "\(bytes)")
        case .maxBodySize(let bytes): ("clients", "max-body-size", "\(bytes)")
        case .headTimeout(let time): ("clients", "head-timeout", time.inFile)
        case .idleTimeout(let time): ("clients", "idle-timeout", time.inFile)
        case .bodyTimeout(let time): ("clients", "body-timeout", time.inFile)
        case .bodyBuffer(let bytes): ("clients", "body-buffer", "\(bytes)B")
        case .minBodyRate(let bytes): ("clients", "min-body-rate", "\(bytes)B")
        case .sendTimeout(let time): ("clients", "send-timeout", time.inFile)
        case .tunnelTimeout(let time): ("clients", "tunnel-timeout", time.inFile)
        case .maxWaiters(let count): ("coalescing", "max-waiters", "\(count)")
        case .waitTimeout(let time): ("coalescing", "wait-timeout", time.inFile)
        case .overtakeAfter(let time): ("coalescing", "overtake-after", time.inFile)
        case .whenExceeded(let action): ("coalescing", "when-exceeded", "\"\(action)\"")
        case .unshareableTTL(let time): ("coalescing", "unshareable-ttl", time.inFile)
        case .whenLastLeaves(let action): ("coalescing", "when-last-leaves", action)
        case .memory(let mebibytes): ("storage", "memory", "\(mebibytes)MiB")
        case .maxObjectSize(let bytes): ("storage", "max-object-size", "\(bytes)B")
        case .rangeMisses(let rule): ("caching", "range-misses", rule)
        case .staleIfError(let time): ("caching", "stale-if-error", time.inFile)
        case .connectTimeout(let time): ("upstream", "connect-timeout", time.inFile)
        case .firstByteTimeout(let time): ("upstream", "first-byte-timeout", time.inFile)
        case .noProgressTimeout(let time): ("upstream", "no-progress-timeout", time.inFile)
        case .maxConcurrentFetches(let count): ("upstream", "max-concurrent-fetches", "\(count)")
        case .maxQueuedFetches(let count): ("upstream", "max-queued-fetches", "\(count)")
        case .maxFailures(let count): ("upstream", "max-failures", "\(count)")
        case .failureCooldown(let time): ("upstream", "failure-cooldown", time.inFile)
        case .resume(let times): ("upstream", "resume", "\(times)")
        case .other(let section, let key, let value): (section, key, value)
        case .storesPostAnswers: ("route", "store-post-answers", "true")
        case .accessLog: ("access-log", "target", "@/access.log")
        }
    }

    /// The file for `settings`, with one upstream of one server.
    static func file(_ settings: [Setting], upstream url: String) -> String { file(settings, servers: [url]) }

    /// The file for `settings`, with one upstream of these servers: URLs, or maps such as `{url: http://a, weight: 2}`.
    static func file(_ settings: [Setting], servers: [String]) -> String {
        let entries = settings.map(\.entry)
        func lines(_ section: String, _ indent: String) -> [String] {
            entries.filter { $0.section == section }.map { "\(indent)\($0.key): \($0.value)" }
        }
        var text = lines("", "")
        for section in ["clients", "coalescing", "storage", "purge", "caching", "forwarding", "tls", "admin", "shared"]
        {
            var inner = lines(section, "  ")
            // A busy machine, or a sanitizer, must not make the program overtake what a scenario holds back.
            if section == "coalescing", !inner.contains(where: { $0.hasPrefix("  overtake-after:") }) {
                inner.append("  overtake-after: 1m")
            }
            if !inner.isEmpty { text += ["\(section):"] + inner }
        }
        let log = lines("access-log", "  ")
        if !log.isEmpty {
            let usual = ["format: json", "flush-wait: 20ms"].filter { line in
                !log.contains { $0.hasPrefix("  \(line.prefix { $0 != ":" })") }
            }
            text += ["access-log:"] + usual.map { "  " + $0 } + log
        }
        let quoted = servers.map { $0.hasPrefix("{") ? $0 : "\"\($0)\"" }.joined(separator: ", ")
        text += ["upstreams:", "  - name: origin", "    servers: [\(quoted)]"] + lines("upstream", "    ")
        let route = lines("route", "    ")
        if !route.isEmpty { text += ["routes:", "  - upstream: origin"] + route }
        return (text + [""]).joined(separator: "\n")
    }

    /// A file with five mistakes, each on a line of its own: an unknown key, a wrong type, a value out of range, a
    /// malformed duration and a malformed address.
    static let fileWithFiveMistakes = (
        text: """
        workers: many
        colour: blue
        clients:
          head-timeout: ten seconds
          max-head-size: -1
        admin:
          address: nowhere
        """,
        lines: [1, 2, 4, 5, 7]
    )
}

extension Duration {
    fileprivate var inFile: String { "\(Int(inMilliseconds))ms" }
}

/// Names on the metrics page.
enum Metric: String {
    case led = #"coalesced_coalescing_total{event="led"}"#
    case alone = #"coalesced_coalescing_total{event="alone"}"#
    case joined = #"coalesced_coalescing_total{event="joined"}"#
    case joinedLate = #"coalesced_coalescing_total{event="joined-late"}"#
    case released = #"coalesced_coalescing_total{event="released"}"#
    case overtaken = #"coalesced_coalescing_total{event="overtaken"}"#
    case hits = #"coalesced_verdicts_total{verdict="hit"}"#
    /// Of every method.
    case requests = "coalesced_requests_total"
    case tooLarge = #"coalesced_stores_total{outcome="too-large"}"#
    case fetches = "coalesced_upstream_fetches_total"
    case inFlight = #"coalesced_fetches_in_flight{upstream="origin"}"#
    case queued = #"coalesced_fetches_queued{upstream="origin"}"#
    case slots = #"coalesced_fetches_limit{upstream="origin"}"#
    case retries = "coalesced_upstream_retries_total"
    case resumes = "coalesced_upstream_resumes_total"
    case connectFailures = #"coalesced_upstream_failures_total{kind="connect"}"#
    case openClients = "coalesced_client_connections"
    case openedClients = "coalesced_client_connections_opened_total"
    case clientLimit = "coalesced_client_connections_limit"
    case lastReloadSucceeded = "coalesced_config_last_reload_successful"
    case residentBytes = "coalesced_process_resident_memory_bytes"
    case openDescriptors = "coalesced_process_open_fds"
    case mostDescriptors = "coalesced_process_max_fds"
    case startTime = "coalesced_process_start_time_seconds"
    case refusedClients = "coalesced_client_connections_refused_total"
    case inFlightBytes = "coalesced_in_flight_bytes"
    case storedBytes = "coalesced_stored_bytes"
    case openUpstreams = "coalesced_upstream_connections"
    case clientReceivedBytes = "coalesced_client_received_bytes_total"
    case clientSentBytes = "coalesced_client_sent_bytes_total"
    case malformed = "coalesced_malformed_requests_total"
    case denied = "coalesced_denied_requests_total"
    case limited = "coalesced_limited_requests_total"
    /// Own answers of routes.
    case ownAnswers = #"coalesced_verdicts_total{upstream="",verdict="synthetic"}"#
    case limitedClients = "coalesced_client_connections_limited_total"
}
