import Bytes
import HTTPSemantics

/// The names of the counters and histograms on the metrics page.

extension CounterValues {
    /// All counters, and the gauges derived from them.
    /// - Parameter upstreams: the names of the upstreams to report, in the order of the page.
    public func families(upstreams: [String]) -> [MetricFamily] {
        [
            .counter(
                "requests", "Requests by method.",
                Method.counted.map { MetricSample([("method", $0.label)], .whole(self[.requests($0)])) }),
            labelled("responses", "Responses sent, by class of status.", "class", Counter.responses),
            verdicts(of: upstreams),
            labelled("coalescing", "Coalescing events, by kind.", "event", Counter.coalescing),
            labelled("stores", "Responses offered to the store, by outcome.", "outcome", Counter.stores),
            .counter("upstream_fetches", "Exchanges started with origins.", samples(of: upstreams, .fetches)),
            .counter(
                "upstream_retries", "Requests sent to an origin again after a failure.",
                samples(of: upstreams, .retries)),
            .counter(
                "upstream_resumes", "Responses that broke off and went on by another exchange.",
                samples(of: upstreams, .resumes)),
            .counter(
                "upstream_failures", "Failed exchanges with origins, by kind of failure.",
                upstreams.flatMap { name in
                    UpstreamFailure.allCases.map { failure in
                        MetricSample(
                            [("upstream", name), ("kind", "\(failure.name)")],
                            .whole(self[upstream: name][.failures(failure)]))
                    }
                }),
            .counter(
                "upstream_responses", "Responses received from origins, by class of status.",
                upstreams.flatMap { name in
                    StatusClass.allCases.map { status in
                        MetricSample(
                            [("upstream", name), ("class", "\(status.name)")],
                            .whole(self[upstream: name][.responses(status)]))
                    }
                }),
            durations(
                of: upstreams, .firstByte, "upstream_first_byte_seconds",
                "Time from when a request had been sent to an origin to the head of its response."),
            durations(
                of: upstreams, .connect, "upstream_connect_seconds", "Time it took to connect to a server of an origin."
            ),
            single("upstream_connects", "Connections opened to origins.", .upstreamConnects),
            single("upstream_reuses", "Requests sent on a reused connection.", .upstreamReuses),
            single("upstream_closes", "Connections to origins closed.", .upstreamCloses),
            .gauge("upstream_connections", "Open connections to origins.", upstreamConnectionsOpen),
            single("upstream_received_bytes", "Bytes read from origins.", .upstreamBytesIn),
            single("upstream_sent_bytes", "Bytes written to origins.", .upstreamBytesOut),
            single("client_connections_opened", "Client connections accepted.", .clientConnectionsOpened),
            single("client_connections_closed", "Client connections closed.", .clientConnectionsClosed),
            single(
                "client_connections_refused", "Client connections rejected because of the limit.",
                .clientConnectionsRefused),
            .gauge("client_connections", "Open client connections.", clientConnectionsOpen),
            single("client_received_bytes", "Bytes read from clients.", .clientBytesIn),
            single("client_sent_bytes", "Bytes written to clients.", .clientBytesOut),
            single("malformed_requests", "Requests rejected as malformed.", .malformedRequests),
            single("denied_requests", "Requests refused by allow, deny or purge.methods-from.", .deniedRequests),
            single("limited_requests", "Requests refused by rate-limit.", .limitedRequests),
            single(
                "client_connections_limited",
                "Client connections rejected because their client had too many (max-connections-per-client).",
                .clientConnectionsLimited),
        ]
    }

    /// The counters of what only listeners with TLS have.
    public func handshakeFamilies() -> [MetricFamily] {
        [
            .counter(
                "tls_handshakes", "Handshakes of TLS with clients, by version and by whether a session was resumed.",
                ClientHandshake.allCases.map { MetricSample($0.labels, .whole(self[.handshakes($0)])) }),
            labelled(
                "tls_handshake_failures", "Clients of listeners with TLS that had no handshake, by reason.", "reason",
                Counter.handshakeFailures),
        ]
    }

    /// The counters of HTTP/2.
    public func http2Families() -> [MetricFamily] {
        func errors(_ name: String, _ help: String, _ counter: (HTTP2Error) -> Counter) -> MetricFamily {
            .counter(name, help, HTTP2Error.all.map { MetricSample($0.labels, .whole(self[counter($0)])) })
        }
        return [
            single("http2_streams", "Requests of clients on streams of HTTP/2.", .http2Streams),
            errors("http2_resets", "Streams of HTTP/2 that were reset, by side and error code.", Counter.http2Resets),
            errors(
                "http2_connection_errors", "Connections of HTTP/2 that ended with an error, by side and error code.",
                Counter.http2Failures),
        ]
    }

    /// A request is refused before it is known which upstream it is for, or for a reason that does not depend on the
    /// upstream; and a route with an answer of its own has no upstream.
    private func verdicts(of upstreams: [String]) -> MetricFamily {
        func sample(_ name: String, _ values: UpstreamCounterValues, _ verdict: Verdict) -> MetricSample {
            MetricSample([("upstream", name), ("verdict", "\(verdict.name)")], .whole(values[.verdicts(verdict)]))
        }
        let routed = Verdict.allCases.filter { $0 != .refused }
        return .counter(
            "verdicts",
            "Requests by upstream and cache verdict; refused ones and those of routes with an answer of their own have no upstream.",
            upstreams.flatMap { name in routed.map { sample(name, self[upstream: name], $0) } }
                + [Verdict.synthetic, .refused].map { sample("", unrouted, $0) })
    }

    private func durations(of upstreams: [String], _ measure: UpstreamMeasure, _ name: String, _ help: String)
        -> MetricFamily
    {
        MetricFamily(
            name, help, .histogram,
            upstreams.map { MetricSample([("upstream", $0)], .durations(self[upstream: $0][measure])) })
    }

    private func samples(of upstreams: [String], _ counter: UpstreamCounter) -> [MetricSample] {
        upstreams.map { MetricSample([("upstream", $0)], .whole(self[upstream: $0][counter])) }
    }

    private func single(_ name: String, _ help: String, _ counter: Counter) -> MetricFamily {
        .counter(name, help, self[counter])
    }

    private func labelled<Name: PublicName>(
        _ name: String, _ help: String, _ label: String, _ counter: (Name) -> Counter
    ) -> MetricFamily {
        .counter(name, help, Name.allCases.map { MetricSample([(label, "\($0.name)")], .whole(self[counter($0)])) })
    }
}

extension LatencySnapshot {
    /// The histograms, in seconds.
    public func families() -> [MetricFamily] {
        [
            family(
                "first_byte_seconds", "Time from the first byte of a request to the first byte of its response.",
                .firstByte),
            family(
                "duration_seconds", "Time from the first byte of a request to the last byte of its response.", .total),
        ]
    }

    private func family(_ name: String, _ help: String, _ measure: LatencyMeasure) -> MetricFamily {
        MetricFamily(
            "request_" + name, help, .histogram,
            LatencyClass.allCases.map { latencyClass in
                MetricSample([("class", "\(latencyClass.name)")], .durations(self[measure, latencyClass].durations))
            })
    }
}
