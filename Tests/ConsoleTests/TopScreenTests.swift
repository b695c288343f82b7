@testable import Console
import Testing

@Suite struct TopScreenTests {
    /// Counters after `seconds`, of which those of upstreams have a label if that is known.
    private static func metrics(_ seconds: Double, byUpstream: Bool) -> String {
        let (wp, api) = byUpstream ? (",upstream=\"wp\"", ",upstream=\"api\"") : ("", "")
        let all = """
            # HELP coalesced_requests_total Requests.
            # TYPE coalesced_requests_total counter
            coalesced_requests_total{method="get"} \(100 * seconds)
            coalesced_requests_total{method="post"} \(10 * seconds)
            coalesced_verdicts_total{verdict="hit"\(wp)} \(80 * seconds)
            coalesced_verdicts_total{verdict="miss"\(wp)} \(20 * seconds)
            coalesced_verdicts_total{verdict="revalidated"\(api)} \(4 * seconds)
            coalesced_verdicts_total{verdict="stale"\(api)} \(1 * seconds)
            coalesced_verdicts_total{verdict="synthetic"\(api)} \(5 * seconds)
            coalesced_coalescing_total{event="joined"} \(3 * seconds)
            coalesced_coalescing_total{event="joined-late"} \(4 * seconds)
            coalesced_client_sent_bytes_total \(2097152 * seconds)
            coalesced_client_connections 1204
            """
        let labelled = """

            coalesced_upstream_fetches_total{upstream="wp"} \(20 * seconds)
            coalesced_upstream_fetches_total{upstream="api"} \(10 * seconds)
            coalesced_upstream_failures_total{upstream="api",kind="connect"} \(5 * seconds)
            coalesced_upstream_first_byte_seconds_bucket{upstream="api",le="0.1"} 0
            coalesced_upstream_first_byte_seconds_bucket{upstream="api",le="0.25"} \(10 * seconds)
            coalesced_upstream_first_byte_seconds_bucket{upstream="api",le="+Inf"} \(10 * seconds)
            coalesced_upstream_first_byte_seconds_count{upstream="api"} \(10 * seconds)
            coalesced_request_first_byte_seconds_bucket{class="hit",le="0.0001"} \(80 * seconds)
            coalesced_request_first_byte_seconds_bucket{class="hit",le="0.00025"} \(80 * seconds)
            coalesced_request_first_byte_seconds_bucket{class="hit",le="+Inf"} \(80 * seconds)
            coalesced_request_first_byte_seconds_bucket{class="miss",le="0.01"} \(5 * seconds)
            coalesced_request_first_byte_seconds_bucket{class="miss",le="0.025"} \(15 * seconds)
            coalesced_request_first_byte_seconds_bucket{class="miss",le="60"} \(15 * seconds)
            coalesced_request_first_byte_seconds_bucket{class="miss",le="+Inf"} \(20 * seconds)
            coalesced_request_first_byte_seconds_count{class="hit"} \(80 * seconds)
            coalesced_worker_cpu_seconds_total{worker="0",mode="user"} \(0.25 * seconds)
            coalesced_worker_cpu_seconds_total{worker="0",mode="system"} \(0.5 * seconds)
            coalesced_worker_cpu_seconds_total{worker="1",mode="user"} \(0.25 * seconds)
            """
        return all + (byUpstream ? labelled : "\ncoalesced_upstream_fetches_total \(30 * seconds)\n")
    }

    private static func sample(at time: Double, known: Bool) throws -> TopSample {
        TopSample(status: try status(limits: known), metrics: MetricsPage(metrics(time, byUpstream: known)), time: time)
    }

    @Test func `a screen has rates, shares, limits and a line for each upstream`() throws {
        let screen = TopScreen(try Self.sample(at: 12, known: true), since: try Self.sample(at: 10, known: true))
        #expect(
            screen.lines(columns: 100, rows: 100) == [
                "coalesced 0.1.0, running for 3d 4h, reloaded 12m ago: ok",
                "",
                "requests  110/s: hit 72.7%  stale 0.9%  miss 21.8%  pass 0.0%  own 4.5%",
                "bytes     2.0 MiB/s to clients, -/s from origins",
                "clients   1204 of 19050",
                "memory    231 MiB of 256 MiB: 219 MiB stored (6120 responses), 12 MiB in flight, -/s evicted",
                "per s     joined 7.0, overtaken -, refused -, retries -, log lines dropped -",
                "latency   p50/p99 to the first byte: hit <0.1/<0.1 ms  miss 18/60000 ms  pass -",
                "workers   2, busy 50.0% on average, the busiest 75.0%",
                "",
                "UPSTREAM  SERVERS                  REQ/S   HIT%  FETCH/S  FAIL/S  RUNNING  QUEUED  P99 MS",
                "wp        1 up                       100  80.0%       20       -   12/256       0       -",
                "api       1 up, 1 FAILING for 31s     10  20.0%       10     5.0    41/41       3     249",
                "",
                "FETCH OF  AGE   BYTES  WAITING      PHASE  KEY",
                "api       41s  38 MiB        1  streaming  http a /big?8",
                "wp         1s     0 B        2  executing  http a /b?[2J",
            ])
    }

    @Test func `listeners with TLS have a line with handshakes, failures, and a certificate that soon expires`() throws
    {
        func page(_ scale: Int) -> MetricsPage {
            let handshakes = [("1.2", "false", 2), ("1.2", "true", 0), ("1.3", "false", 6), ("1.3", "true", 12)].map {
                "coalesced_tls_handshakes_total{version=\"\($0.0)\",resumed=\"\($0.1)\"} \($0.2 * scale)"
            }
            let failures = [("protocol", 3), ("alert", 0), ("plain", 1)].map {
                "coalesced_tls_handshake_failures_total{reason=\"\($0.0)\"} \($0.1 * scale)"
            }
            return MetricsPage((handshakes + failures).joined(separator: "\n"))
        }
        func line(_ status: JSONValue, _ scale: Int = 2) -> String? {
            let before = TopSample(status: .null, metrics: page(1), time: 1)
            let now = TopSample(status: status, metrics: page(scale), time: 2)
            return TopScreen(now, since: before).lines(columns: 200, rows: 50).first { $0.hasPrefix("tls") }
        }
        let rates = "tls       20 handshakes/s: resumed 60.0%  1.3 90.0%; failed 4.0/s (protocol 3.0, plain 1.0)"
        #expect(line(try secureStatus(left: 5_000_000)) == rates)
        #expect(line(try secureStatus(left: 86_400)) == "\(rates); /etc/ssl/shop.pem EXPIRES in 1d 0h")
        #expect(line(try secureStatus(left: 5_000_000), 1) == "tls       0 handshakes/s: resumed -  1.3 -; failed 0/s")
        #expect(line(try status(limits: true)) == nil)
    }

    @Test func `requests over HTTP2 have a line, with resets by side and failed connections`() {
        func page(_ scale: Int) -> MetricsPage {
            MetricsPage(
                """
                coalesced_http2_streams_total \(100 * scale)
                coalesced_http2_resets_total{by="client",code="CANCEL"} \(4 * scale)
                coalesced_http2_resets_total{by="proxy",code="PROTOCOL_ERROR"} \(2 * scale)
                coalesced_http2_connection_errors_total{by="proxy",code="ENHANCE_YOUR_CALM"} \(scale)
                """)
        }
        func line(_ scale: Int) -> String? {
            let before = TopSample(status: .null, metrics: page(scale == 0 ? 0 : 1), time: 1)
            let now = TopSample(status: .null, metrics: page(scale), time: 2)
            return TopScreen(now, since: before).lines(columns: 200, rows: 50).first { $0.hasPrefix("http2") }
        }
        #expect(
            line(2)
                == "http2     100 requests/s; streams reset by clients 4.0/s, here 2.0/s; connections failed 1.0/s")
        #expect(line(0) == nil)
    }

    @Test func `a tier shared with other machines has a line`() throws {
        func page(_ scale: Int) -> MetricsPage {
            MetricsPage(
                [("hit", 10), ("joined", 2), ("led", 3), ("unanswered", 1), ("broken", 4)].map {
                    "coalesced_shared_fetches_total{event=\"\($0.0)\"} \($0.1 * scale)"
                }.joined(separator: "\n"))
        }
        func line(_ status: String) throws -> String? {
            let (now, before) = (
                TopSample(status: try json(status), metrics: page(2), time: 2),
                TopSample(status: .null, metrics: page(1), time: 1)
            )
            return TopScreen(now, since: before).lines(columns: 200, rows: 50).first { $0.hasPrefix("shared") }
        }
        let rates = "per s: hit 10, joined 2.0, led 3.0, failed 5.0; p50/p99 -"
        #expect(try line(sharedStatus) == "shared    1 of 2 ready, redis://10.0.0.2:6379 UNREACHABLE; \(rates)")
        #expect(try line("{\"shared\": {}}") == "shared    NOT CONNECTED; \(rates)")
        #expect(
            try line("{\"shared\": {\"nodes\": [{\"state\": \"ready\"}], \"knows_purges\": true}}")
                == "shared    ready; \(rates)")
        #expect(try line("{}") == nil)
    }

    /// Of twenty, the first five took less than a tenth, five more up to two tenths, and the others up to a second.
    @Test(arguments: [(0.25, 0.1), (0.5, 0.2), (0.1, 0.04), (0.75, 0.75), (1, 1)])
    func `a quantile of a latency lies between the bounds of its bucket`(_ share: Double, _ seconds: Double) throws {
        func sample(_ scale: Int, at time: Double) -> TopSample {
            let buckets = [("0.1", 5), ("0.2", 10), ("0.5", 10), ("1", 20), ("+Inf", 20)]
            let lines = buckets.map { "coalesced_t_bucket{class=\"a\",le=\"\($0.0)\"} \($0.1 * scale)" }
            let unchanged = "coalesced_t_bucket{class=\"b\",le=\"0.2\"} 7"
            let page = MetricsPage((lines + [unchanged]).joined(separator: "\n"))
            return TopSample(status: .null, metrics: page, time: time)
        }
        let screen = TopScreen(sample(3, at: 2), since: sample(2, at: 1))
        let found = screen.quantile(share, "t", ["class": "a"])
        #expect(found.map { abs($0 - seconds) < 1e-9 } == true)
        #expect(screen.quantile(share, "t", ["class": "b"]) == nil, "nothing was counted")
        #expect(screen.quantile(share, "u", ["class": "a"]) == nil)
    }

    @Test func `the first screen has no rates, and an older program has fewer columns`() throws {
        let lines = TopScreen(try Self.sample(at: 10, known: false), since: nil).lines(columns: 100, rows: 100)
        #expect(lines[2] == "requests  -/s: hit -  stale -  miss -  pass -  own -")
        #expect(lines[4] == "clients   1204")
        #expect(
            lines[8...9] == [
                "UPSTREAM  SERVERS                  RUNNING  QUEUED",
                "wp        1 up                          12       0",
            ])
    }

    @Test(arguments: [(80, 24), (40, 5), (10, 1), (1, 1), (0, 0)])
    func `a screen fits the terminal`(columns: Int, rows: Int) throws {
        let screen = TopScreen(try Self.sample(at: 12, known: true), since: try Self.sample(at: 10, known: true))
        let lines = screen.lines(columns: columns, rows: rows)
        #expect(lines.count == min(rows, 17) && lines.allSatisfy { $0.count <= columns })
    }

    /// With as many upstreams, of which one has a server that fails, and as many fetches.
    private static func crowded(upstreams: Int, failing: Int?, fetches: Int) throws -> TopScreen {
        let upstreams = (1...upstreams).map { number in
            "{\"name\": \"upstream-\(number)\", \"servers\": [{\"state\": \"\(number == failing ? "ejected" : "up")\"}]}"
        }
        let fetches = (0..<fetches).map { "{\"upstream\": \"a\", \"key\": \"k\($0)\", \"seconds\": \(100 - $0)}" }
        let text =
            "{\"upstreams\": [\(upstreams.joined(separator: ","))], \"fetches\": [\(fetches.joined(separator: ","))]}"
        return TopScreen(TopSample(status: try json(text), metrics: MetricsPage(""), time: 1), since: nil)
    }

    @Test func `upstreams and fetches without room are counted, and failing upstreams come first`() throws {
        let lines = try Self.crowded(upstreams: 30, failing: 25, fetches: 0).lines(columns: 60, rows: 23)
        #expect(lines.count == 23 && lines.last == "and 17 more upstreams", "\(lines)")
        #expect(lines[9].hasPrefix("upstream-25") && lines[9].contains("1 FAILING"), "\(lines)")
        #expect(lines[10].hasPrefix("upstream-1 ") && lines[21].hasPrefix("upstream-12 "), "\(lines)")
        let both = try Self.crowded(upstreams: 30, failing: nil, fetches: 40).lines(columns: 60, rows: 23)
        #expect(both.suffix(3) == ["and 19 more upstreams", "", "fetches: 40"] && both.count == 23, "\(both)")
        let fetches = try Self.crowded(upstreams: 2, failing: nil, fetches: 40).lines(columns: 60, rows: 23)
        #expect(fetches.last == "and 31 more fetches" && fetches.count == 23, "\(fetches)")
        let all = try Self.crowded(upstreams: 2, failing: 2, fetches: 10).lines(columns: 60, rows: 23)
        #expect(all[9].hasPrefix("upstream-1 ") && all.last?.hasSuffix("k9") == true && all.count == 23, "\(all)")
        let none = try Self.crowded(upstreams: 30, failing: 25, fetches: 0).lines(columns: 60, rows: 10)
        #expect(none.last == "upstreams: 30, 1 FAILING", "\(none)")
        for rows in 0...12 {
            let few = try Self.crowded(upstreams: 30, failing: nil, fetches: 40).lines(columns: 60, rows: rows)
            #expect(few.count <= rows && few.count >= min(rows, 8), "\(few)")
        }
    }

    @Test(arguments: ["api", "the-one-behind-the-first-load-balancer"])
    func `a failing server is visible on a narrow terminal`(name: String) throws {
        let text =
            "{\"upstreams\": [{\"name\": \"\(name)\", \"servers\": [{\"state\": \"down\", \"state_seconds\": 100000}]}]}"
        let sample = TopSample(
            status: try json(text), metrics: MetricsPage(Self.metrics(1, byUpstream: true)), time: 1)
        let lines = TopScreen(sample, since: nil).lines(columns: 60, rows: 23)
        #expect(lines.last?.contains("1 FAILING for 1d 3h") == true, "\(lines)")
    }

    /// The last line, for an upstream with these servers.
    private static func row(servers: [String]) throws -> String {
        let status = try json("{\"upstreams\": [{\"name\": \"a\", \"servers\": [\(servers.joined(separator: ","))]}]}")
        let screen = TopScreen(TopSample(status: status, metrics: MetricsPage(""), time: 1), since: nil)
        return try #require(screen.lines(columns: 80, rows: 23).last)
    }

    @Test(arguments: [
        (["up", "slow-start", "drained"], " 2 up, 1 drained "), (["drained"], " 1 drained "), ([], " 0 up "),
        (["up", "probing", "ejected", "drained"], " 1 up, 2 FAILING, 1 drained "),
    ])
    func `servers are counted by what they are good for`(states: [String], text: String) throws {
        let row = try Self.row(servers: states.map { "{\"state\": \"\($0)\"}" })
        #expect(row.contains(text), "\(row)")
    }

    @Test func `the addresses of a name are counted in place of their server, if there are several`() throws {
        let (up, down) = ("{\"state\": \"up\"}", "{\"state\": \"down\"}")
        let row = try Self.row(servers: [
            "{\"state\": \"up\", \"addresses\": [\(up), \(down), \(down)]}",
            "{\"state\": \"up\", \"addresses\": [\(down)]}",
        ])
        #expect(row.contains(" 2 up, 2 FAILING "), "\(row)")
    }

    @Test func `a restarted program has no negative rates`() throws {
        let screen = TopScreen(try Self.sample(at: 2, known: true), since: try Self.sample(at: 1, known: true))
        let again = TopScreen(
            TopSample(status: screen.now.status, metrics: MetricsPage("coalesced_requests_total 1\n"), time: 3),
            since: screen.now)
        #expect(again.lines(columns: 100, rows: 3).last?.hasPrefix("requests  0/s") == true)
    }

    @Test func `the labels of samples are unescaped`() {
        let page = MetricsPage("a{x=\"1,\\\"}\\\\\\n\",y=\"\"} 2\nb 3\n# c 4\nd\ne x\n")
        #expect(
            page.samples == [
                .init(family: "a", labels: ["x": "1,\"}\\\n", "y": ""], value: 2),
                .init(family: "b", labels: [:], value: 3),
            ])
    }
}
