/// The contents of `/status` and `/metrics` at one moment.
package struct TopSample: Sendable {
    let status: JSONValue
    let metrics: MetricsPage
    /// In seconds of a clock that never goes back.
    let time: Double

    package init(status: JSONValue, metrics: MetricsPage, time: Double) {
        self.status = status
        self.metrics = metrics
        self.time = time
    }
}

/// One screen of `coalesced top`: the proxy's present state, and the rates since the previous sample.
package struct TopScreen {
    let now: TopSample
    /// `nil`: there are no rates yet.
    let before: TopSample?

    package init(_ now: TopSample, since before: TopSample?) {
        self.now = now
        self.before = before
    }

    /// At most `rows` lines of at most `columns` characters each. If upstreams or fetches do not fit, a line gives the
    /// number of the missing ones, and upstreams with failing servers come first.
    package func lines(columns: Int, rows: Int) -> [String] {
        let head = [StatusText.headline(now.status), ""] + summary + [""]
        let room = rows - head.count
        let fetches = Fetches.table(Fetches.oldestFirst(now.status)).lines
        let upstreamRoom = fetches.isEmpty ? room : max(room - 2, 1)
        let failing = (now.status["upstreams"]?.elements ?? []).count(where: Self.isFailing)
        let fitting = Self.fitting(
            upstreams(columns: columns, rows: upstreamRoom), rows: upstreamRoom, "upstreams",
            note: failing > 0 ? ", \(failing) FAILING" : "")
        let rest = fetches.isEmpty ? [] : [""] + Self.fitting(fetches, rows: room - fitting.count - 1, "fetches")
        return (head + fitting + rest).prefix(max(0, rows)).map { Wording.line($0, width: columns) }
    }

    /// A table with a heading, in at most `rows` lines.
    /// - Parameter note: the part that must be shown even if there is no room for the table.
    private static func fitting(_ table: [String], rows: Int, _ what: String, note: String = "") -> [String] {
        guard table.count > rows else { return table }
        guard rows > 2 else { return ["\(what): \(table.count - 1)\(note)"] }
        return table.prefix(rows - 1) + ["and \(table.count - rows + 1) more \(what)"]
    }

    // MARK: - The proxy

    private var summary: [String] {
        let status = now.status
        let clients = now.metrics.sum("client_connections") ?? status["clients"]?["connections"]?.number ?? 0
        let limit = now.metrics.sum("client_connections_limit") ?? status["clients"]?["limit"]?.number
        return [
            "requests  \(rate("requests_total"))/s: " + shares(verdicts),
            "bytes     \(byteRate("client_sent_bytes_total"))/s to clients, "
                + "\(byteRate("upstream_received_bytes_total"))/s from origins",
            "clients   \(Wording.whole(clients))\(limit.map { " of \(Wording.whole($0))" } ?? "")",
            "memory    \(StatusText.memory(status)), \(rate("evictions_total"))/s evicted",
            "per s     joined \(event("joined", "joined-late")), overtaken \(event("overtaken")), "
                + "refused \(event("refused")), retries \(rate("upstream_retries_total")), "
                + "log lines dropped \(rate("log_lines_total", ["fate": "dropped"]))",
        ] + tls + http2 + tier + latencies + workers
    }

    /// The handshakes with clients. Empty without a listener that speaks TLS.
    private var tls: [String] {
        guard let tls = now.status["tls"] else { return [] }
        let family = "tls_handshakes_total"
        let all = growth(family)
        func share(_ labels: [String: String]) -> String {
            Wording.share(growth(family, labels) ?? 0, of: all ?? 0)
        }
        let failures = "tls_handshake_failures_total"
        let reasons = now.metrics.values(of: "reason", in: failures)
            .map { (name: $0, perSecond: growth(failures, ["reason": $0]) ?? 0) }.filter { $0.perSecond > 0 }
            .sorted { ($1.perSecond, $0.name) < ($0.perSecond, $1.name) }
            .map { "\($0.name) \(Wording.rate($0.perSecond))" }
        let warning = Certificates.warning(of: tls).map { "; \($0)" } ?? ""
        return [
            "tls       \(rate(family)) handshakes/s: resumed \(share(["resumed": "true"]))  1.3 \(share(["version": "1.3"])); "
                + "failed \(rate(failures))/s\(reasons.isEmpty ? "" : " (\(reasons.joined(separator: ", ")))")\(warning)"
        ]
    }

    /// The requests over HTTP/2, and what went wrong with them. Empty until there is one.
    private var http2: [String] {
        guard let streams = now.metrics.sum("http2_streams_total"), streams > 0 else { return [] }
        func resets(_ side: String) -> String { rate("http2_resets_total", ["by": side]) }
        return [
            "http2     \(rate("http2_streams_total")) requests/s; streams reset by clients \(resets("client"))/s, here "
                + "\(resets("proxy"))/s; connections failed \(rate("http2_connection_errors_total"))/s"
        ]
    }

    /// The tier shared with other machines. Empty without one.
    private var tier: [String] {
        guard let tier = now.status["shared"] else { return [] }
        let nodes = tier["nodes"]?.elements ?? []
        let ready = nodes.count { $0["state"]?.string == "ready" }
        let failing = nodes.first { $0["state"]?.string != "ready" }
        let state =
            failing.map {
                "\(ready) of \(nodes.count) ready, \($0["node"]?.string ?? "-") \(($0["state"]?.string ?? "-").uppercased())"
            }
            ?? (nodes.isEmpty ? "NOT CONNECTED" : tier["knows_purges"]?.isTrue == true ? "ready" : "PURGES UNKNOWN")
        let family = "shared_reply_seconds"
        let times = quantile(0.5, family, [:]).flatMap { half in
            quantile(0.99, family, [:]).map { "\(Wording.milliseconds(half))/\(Wording.milliseconds($0)) ms" }
        }
        func events(_ names: String...) -> String {
            let found = names.compactMap { growth("shared_fetches_total", ["event": $0]) }
            return found.isEmpty ? "-" : Wording.rate(found.reduce(0, +))
        }
        return [
            "shared    \(state); per s: hit \(events("hit")), joined \(events("joined")), led \(events("led")), "
                + "failed \(events("unanswered", "refused", "broken", "given-up")); p50/p99 \(times ?? "-")"
        ]
    }

    /// The times from a request's first byte to its response's first byte: p50 and p99, for each class. Empty if the
    /// program does not report them.
    private var latencies: [String] {
        let family = "request_first_byte_seconds"
        guard now.metrics.sum("\(family)_count") != nil else { return [] }
        let classes = ["hit", "miss", "pass"].map { name in
            let label = ["class": name]
            guard let half = quantile(0.5, family, label), let most = quantile(0.99, family, label) else {
                return "\(name) -"
            }
            return "\(name) \(Wording.milliseconds(half))/\(Wording.milliseconds(most)) ms"
        }
        return ["latency   p50/p99 to the first byte: " + classes.joined(separator: "  ")]
    }

    /// The workers' use of a core each. Empty if the program does not report it.
    private var workers: [String] {
        let family = "worker_cpu_seconds_total"
        let uses = now.metrics.values(of: "worker", in: family).compactMap { growth(family, ["worker": $0]) }
        guard let most = uses.max() else { return [] }
        let mean = Wording.share(uses.reduce(0, +), of: Double(uses.count))
        return ["workers   \(uses.count), busy \(mean) on average, the busiest \(Wording.share(most, of: 1))"]
    }

    /// Verdicts in the words of the log. Verdicts that differ little are put together.
    private static let groups = [
        ("hit", ["hit"]), ("stale", ["stale"]), ("miss", ["miss", "revalidated"]), ("pass", ["pass"]),
        ("own", ["synthetic", "refused"]),
    ]

    private var verdicts: [(name: String, perSecond: Double)] {
        Self.groups.map { name, verdicts in
            (name, verdicts.reduce(0) { $0 + (growth("verdicts_total", ["verdict": $1]) ?? 0) })
        }
    }

    private func shares(_ verdicts: [(name: String, perSecond: Double)]) -> String {
        let all = verdicts.reduce(0) { $0 + $1.perSecond }
        return verdicts.map { "\($0.name) \(Wording.share($0.perSecond, of: all))" }.joined(separator: "  ")
    }

    // MARK: - The upstreams

    /// A line for each upstream, in columns for which there are figures. The state of the servers comes right after the
    /// name, since the end of a line may be cut off.
    private func upstreams(columns: Int, rows: Int) -> [String] {
        var upstreams = now.status["upstreams"]?.elements ?? []
        if upstreams.count >= rows {
            upstreams = upstreams.filter(Self.isFailing) + upstreams.filter { !Self.isFailing($0) }
        }
        func isThere(_ family: String) -> Bool {
            upstreams.contains { now.metrics.sum(family, ["upstream": StatusText.name(of: $0)]) != nil }
        }
        let firstByte = "upstream_first_byte_seconds"
        let (requests, fetches, failures, latencies) = (
            isThere("verdicts_total"), isThere("upstream_fetches_total"), isThere("upstream_failures_total"),
            isThere("\(firstByte)_count")
        )
        let heading =
            ["UPSTREAM", "SERVERS"] + (requests ? ["REQ/S", "HIT%"] : []) + (fetches ? ["FETCH/S"] : [])
            + (failures ? ["FAIL/S"] : []) + ["RUNNING", "QUEUED"] + (latencies ? ["P99 MS"] : [])
        let rows = upstreams.map { upstream in
            let name = StatusText.name(of: upstream)
            let label = ["upstream": name]
            func answers(_ verdicts: String...) -> Double {
                verdicts.reduce(0) { $0 + (growth("verdicts_total", label.merging(["verdict": $1]) { $1 }) ?? 0) }
            }
            // The share among the requests that could have been hits, as docs/observability.md counts them.
            let hits = answers("hit", "stale")
            return [Wording.name(name, width: max(12, columns / 3)), servers(upstream)]
                + (requests
                    ? [
                        rate("verdicts_total", label),
                        Wording.share(hits, of: hits + answers("miss", "revalidated")),
                    ] : [])
                + (fetches ? [rate("upstream_fetches_total", label)] : [])
                + (failures ? [rate("upstream_failures_total", label)] : [])
                + [slots(upstream, label), Wording.whole(upstream["queued"]?.number ?? 0)]
                + (latencies ? [quantile(0.99, firstByte, label).map(Wording.milliseconds) ?? "-"] : [])
        }
        return TextTable(rows: [heading] + rows, figures: 2..<heading.count).lines
    }

    private func slots(_ upstream: JSONValue, _ label: [String: String]) -> String {
        let limit = now.metrics.sum("fetches_limit", label) ?? upstream["slots"]?.number
        return Wording.whole(StatusText.running(upstream)) + (limit.map { "/\(Wording.whole($0))" } ?? "")
    }

    /// How many servers, with each address of a name, are in which state.
    private func servers(_ upstream: JSONValue) -> String {
        let places = Servers.places(of: upstream)
        let failing = places.filter(Servers.isFailing)
        let drained = places.count(where: Servers.isDrained)
        let up = places.count - failing.count - drained
        let longest = failing.compactMap { $0["state_seconds"]?.number }.max()
        let parts = [
            up > 0 || places.isEmpty ? "\(up) up" : nil,
            failing.isEmpty
                ? nil : "\(failing.count) FAILING" + (longest.map { " for \(Wording.duration($0))" } ?? ""),
            drained > 0 ? "\(drained) drained" : nil,
        ]
        return parts.compactMap(\.self).joined(separator: ", ")
    }

    private static func isFailing(_ upstream: JSONValue) -> Bool {
        Servers.places(of: upstream).contains(where: Servers.isFailing)
    }

    // MARK: - Rates

    /// The growth per second; `nil` without an earlier sample, or without such a counter.
    private func growth(_ family: String, _ labels: [String: String] = [:]) -> Double? {
        guard let before, now.time > before.time, let value = now.metrics.sum(family, labels) else { return nil }
        // A counter is less than before if the program was started anew.
        return max(0, value - (before.metrics.sum(family, labels) ?? 0)) / (now.time - before.time)
    }

    /// The quantile `share` of the durations counted since the previous sample, in seconds, from the bounds of a
    /// histogram. Durations between two bounds are taken to be spread evenly; durations beyond the last bound are taken
    /// to be that bound. `nil` if no duration was counted.
    func quantile(_ share: Double, _ family: String, _ labels: [String: String]) -> Double? {
        let family = "\(family)_bucket"
        let buckets = now.metrics.values(of: "le", in: family).compactMap { text -> (bound: Double, count: Double)? in
            guard let bound = text == "+Inf" ? .infinity : Double(text),
                let count = growth(family, labels.merging(["le": text]) { $1 })
            else { return nil }
            return (bound, count)
        }.sorted { $0.bound < $1.bound }
        guard let all = buckets.last?.count, all > 0 else { return nil }
        var below = (bound: 0.0, count: 0.0)
        for bucket in buckets {
            if bucket.count >= share * all, bucket.count > below.count {
                guard bucket.bound.isFinite else { break }
                let part = (share * all - below.count) / (bucket.count - below.count)
                return below.bound + part * (bucket.bound - below.bound)
            }
            below = bucket.bound.isFinite ? bucket : below
        }
        return below.bound
    }

    private func rate(_ family: String, _ labels: [String: String] = [:]) -> String {
        growth(family, labels).map(Wording.rate) ?? "-"
    }

    private func byteRate(_ family: String) -> String { growth(family).map(Wording.bytes) ?? "-" }

    private func event(_ names: String...) -> String {
        let found = names.compactMap { growth("coalescing_total", ["event": $0]) }
        return found.isEmpty ? "-" : Wording.rate(found.reduce(0, +))
    }
}
