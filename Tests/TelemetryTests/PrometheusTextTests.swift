import Testing

@testable import Telemetry

@Suite struct PrometheusTextTests {
    @Test func `a counter has help, type, the prefix and _total`() {
        let page = PrometheusText.page([
            .counter(
                "things", "Things seen.",
                [
                    MetricSample([("kind", "small")], .whole(3)),
                    MetricSample([("kind", "large"), ("where", "here")], .whole(.max)),
                ])
        ])
        #expect(
            text(page) == """
                # HELP coalesced_things_total Things seen.
                # TYPE coalesced_things_total counter
                coalesced_things_total{kind="small"} 3
                coalesced_things_total{kind="large",where="here"} 18446744073709551615

                """)
    }

    @Test func `labels and help are escaped`() {
        let page = PrometheusText.page([
            .gauge("odd", "a\\b\n\"c\"", [MetricSample([("v", "a\\b\n\"c\"é")], .whole(0))])
        ])
        #expect(
            text(page) == #"""
                # HELP coalesced_odd a\\b\n"c"
                # TYPE coalesced_odd gauge
                coalesced_odd{v="a\\b\n\"c\"é"} 0

                """#)
    }

    @Test(
        arguments: [
            (0, "0"), (1, "0.000000001"), (250_000, "0.00025"), (1_000_000_000, "1"), (2_500_000_000, "2.5"),
            (60_000_000_000, "60"),
        ] as [(UInt64, String)])
    func `nanoseconds are written as seconds, exactly`(nanoseconds: UInt64, expected: String) {
        let recorder = LatencyRecorder()
        recorder.record(.pass, firstByte: 0, total: nanoseconds)
        let page = text(PrometheusText.page(recorder.snapshot().families()))
        #expect(page.contains("\ncoalesced_request_duration_seconds_sum{class=\"pass\"} \(expected)\n"))
    }

    @Test func `a histogram has growing buckets, +Inf, an exact sum and a count`() {
        let recorder = LatencyRecorder()
        // Away from the bounds, where the buckets' 0.8 % does not matter.
        for nanoseconds in [50_000, 200_000, 200_000, 2_000_000, 70_000_000_000] as [UInt64] {
            recorder.record(.hit, firstByte: 0, total: nanoseconds)
        }
        let page = text(PrometheusText.page(recorder.snapshot().families()))
        let lines = page.split(separator: "\n").filter {
            $0.hasPrefix("coalesced_request_duration_seconds") && $0.contains("\"hit\"")
        }
        let expected: [(String, Int)] = [
            ("0.0001", 1), ("0.00025", 3), ("0.0005", 3), ("0.001", 3), ("0.0025", 4), ("0.005", 4), ("0.01", 4),
            ("0.025", 4), ("0.05", 4), ("0.1", 4), ("0.25", 4), ("0.5", 4), ("1", 4), ("2.5", 4), ("5", 4), ("10", 4),
            ("30", 4), ("60", 4), ("+Inf", 5),
        ]
        #expect(
            lines.map(String.init) == expected.map {
                "coalesced_request_duration_seconds_bucket{class=\"hit\",le=\"\($0.0)\"} \($0.1)"
            } + [
                "coalesced_request_duration_seconds_sum{class=\"hit\"} 70.00245",
                "coalesced_request_duration_seconds_count{class=\"hit\"} 5",
            ])
    }

    @Test func `every counter stands on the page exactly once`() {
        let loop = LoopMetrics()
        for (index, counter) in Counter.allCases.enumerated() { loop.add(counter, 7_000_000 + UInt64(index)) }
        let values = loop.read()
        let page = text(
            PrometheusText.page(values.families(upstreams: []) + values.handshakeFamilies() + values.http2Families()))
        for index in Counter.allCases.indices {
            #expect(page.split(separator: "\n").count { $0.hasSuffix(" \(7_000_000 + index)") } == 1)
        }
        #expect(page.contains("coalesced_requests_total{method=\"get\"} 7000000\n"))
        #expect(page.contains("coalesced_malformed_requests_total 7000036\n"))
        #expect(page.contains("coalesced_tls_handshakes_total{version=\"1.2\",resumed=\"false\"} 7000040\n"))
        #expect(page.contains("coalesced_tls_handshakes_total{version=\"1.3\",resumed=\"true\"} 7000043\n"))
        #expect(page.contains("coalesced_tls_handshake_failures_total{reason=\"protocol\"} 7000044\n"))
        #expect(page.contains("coalesced_tls_handshake_failures_total{reason=\"plain\"} 7000049\n"))
        #expect(page.contains("coalesced_http2_streams_total 7000050\n"))
        #expect(page.contains("coalesced_http2_resets_total{by=\"proxy\",code=\"NO_ERROR\"} 7000051\n"))
        #expect(page.contains("coalesced_http2_connection_errors_total{by=\"client\",code=\"other\"} 7000110\n"))
    }

    @Test func `counters of an upstream have its name as a label, and refusals and own answers of routes have none`() {
        let loop = LoopMetrics()
        loop.change(toUpstreams: ["b", "a"])
        for (index, counter) in UpstreamCounter.allCases.enumerated() {
            for _ in 0...index { loop.upstream("a").add(counter) }
        }
        loop.unrouted.add(.verdicts(.refused))
        for _ in 1...2 { loop.unrouted.add(.verdicts(.synthetic)) }
        let families = loop.read().families(upstreams: ["b", "a"])
        func lines(_ name: String) -> [Substring] {
            text(PrometheusText.page(families.filter { $0.name == name })).split(separator: "\n").filter {
                !$0.hasPrefix("#")
            }
        }
        /// - Parameter others: the labels behind the upstream's, one sample each.
        func samples(_ name: String, _ others: [String], from first: Int) -> [Substring] {
            ["b", "a"].flatMap { upstream in
                others.enumerated().map { index, label in
                    let value = upstream == "a" ? first + index : 0
                    return "coalesced_\(name)_total{upstream=\"\(upstream)\"\(label)} \(value)"
                }
            }
        }
        let verdicts = Verdict.allCases.filter { $0 != .refused }.map { ",verdict=\"\($0.name)\"" }
        let kinds = UpstreamFailure.allCases.map { ",kind=\"\($0.name)\"" }
        #expect(
            lines("verdicts") == samples("verdicts", verdicts, from: 1) + [
                "coalesced_verdicts_total{upstream=\"\",verdict=\"synthetic\"} 2",
                "coalesced_verdicts_total{upstream=\"\",verdict=\"refused\"} 1",
            ])
        #expect(lines("upstream_failures") == samples("upstream_failures", kinds, from: 8))
        let classes = StatusClass.allCases.map { ",class=\"\($0.name)\"" }
        #expect(lines("upstream_responses") == samples("upstream_responses", classes, from: 21))
        #expect(lines("upstream_fetches") == samples("upstream_fetches", [""], from: 26))
        #expect(lines("upstream_retries") == samples("upstream_retries", [""], from: 27))
        #expect(lines("upstream_resumes") == samples("upstream_resumes", [""], from: 28))
    }

    @Test func `durations of an upstream are a histogram with its name as a label`() {
        let loops = [LoopMetrics(), LoopMetrics()]
        for loop in loops { loop.change(toUpstreams: ["a", "b"]) }
        loops[0].upstream("a").add(.firstByte, 100_000)
        loops[1].upstream("a").add(.firstByte, 100_001)
        loops[1].upstream("b").add(.connect, 5)
        let page = text(PrometheusText.page(CounterValues(sumOf: loops).families(upstreams: ["a", "b"])))
        for line in [
            #"first_byte_seconds_bucket{upstream="a",le="0.0001"} 1"#,
            #"first_byte_seconds_bucket{upstream="a",le="0.00025"} 2"#,
            #"first_byte_seconds_sum{upstream="a"} 0.000200001"#, #"first_byte_seconds_count{upstream="a"} 2"#,
            #"first_byte_seconds_count{upstream="b"} 0"#, #"connect_seconds_count{upstream="a"} 0"#,
            #"connect_seconds_bucket{upstream="b",le="0.0001"} 1"#, #"connect_seconds_sum{upstream="b"} 0.000000005"#,
        ] { #expect(page.contains("\ncoalesced_upstream_\(line)\n"), "\(line)") }
    }

    @Test func `no metric is declared twice, and every sample follows its declaration`() {
        let families =
            LoopMetrics().read().families(upstreams: ["one"]) + LatencySnapshot().families()
            + AccessLogStatus().families()
        var announced: Set<Substring> = []
        var current: Substring = ""
        for line in text(PrometheusText.page(families)).split(separator: "\n") {
            if line.hasPrefix("# TYPE ") {
                current = line.split(separator: " ")[2]
                #expect(announced.insert(current).inserted)
            } else if !line.hasPrefix("#") {
                #expect(line.hasPrefix(current))
            }
        }
        #expect(announced.count == families.count)
    }
}
