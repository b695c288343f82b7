/// Under which names the counters and histograms stand on the metrics page.

extension CounterValues {
    /// All counters, and the gauges that follow from them.
    /// - Parameter upstreams: the names of those that are told of, in the order of the page.
    public func families(upstreams: [String]) -> [MetricFamily] {
        [
            labelled("requests", "Requests by method.", "method", Counter.requests),
            labelled("responses", "Responses sent, by class of status.", "class", Counter.responses),
            verdicts(of: upstreams),
            labelled("coalescing", "Events at the table of operations in flight.", "event", Counter.coalescing),
            labelled("stores", "Responses given to the store, by what became of them.", "outcome", Counter.stores),
            .counter("upstream_fetches", "Exchanges begun with origins.", samples(of: upstreams, .fetches)),
            .counter("upstream_retries", "Exchanges that repeated a failed one.", samples(of: upstreams, .retries)),
            .counter(
                "upstream_failures", "Failed exchanges with origins, by where they failed.",
                upstreams.flatMap { name in
                    UpstreamFailure.allCases.map { failure in
                        MetricSample(
                            [("upstream", name), ("kind", "\(failure.name)")],
                            .whole(self[upstream: name][.failures(failure)]))
                    }
                }),
            single("upstream_connects", "Connections opened to origins.", .upstreamConnects),
            single("upstream_reuses", "Exchanges that reused a connection.", .upstreamReuses),
            single("upstream_closes", "Connections to origins closed.", .upstreamCloses),
            .gauge("upstream_connections", "Connections to origins open now.", upstreamConnectionsOpen),
            single("upstream_received_bytes", "Bytes read from origins.", .upstreamBytesIn),
            single("upstream_sent_bytes", "Bytes written to origins.", .upstreamBytesOut),
            single("client_connections_opened", "Client connections accepted.", .clientConnectionsOpened),
            single("client_connections_closed", "Client connections closed.", .clientConnectionsClosed),
            single(
                "client_connections_refused", "Client connections turned away over the limit.",
                .clientConnectionsRefused),
            .gauge("client_connections", "Client connections open now.", clientConnectionsOpen),
            single("client_received_bytes", "Bytes read from clients.", .clientBytesIn),
            single("client_sent_bytes", "Bytes written to clients.", .clientBytesOut),
            single("malformed_requests", "Requests refused for their syntax.", .malformedRequests),
        ]
    }

    /// What is refused is so before it is of any upstream, or whichever that is.
    private func verdicts(of upstreams: [String]) -> MetricFamily {
        func sample(_ name: String, _ values: UpstreamCounterValues, _ verdict: Verdict) -> MetricSample {
            MetricSample([("upstream", name), ("verdict", "\(verdict.name)")], .whole(values[.verdicts(verdict)]))
        }
        let routed = Verdict.allCases.filter { $0 != .refused }
        return .counter(
            "verdicts", "Requests by upstream and by the cache's verdict; refused ones are of none.",
            upstreams.flatMap { name in routed.map { sample(name, self[upstream: name], $0) } }
                + [sample("", unrouted, .refused)])
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
            family("first_byte_seconds", "From a request's first byte to its response's first.", .firstByte),
            family("duration_seconds", "From a request's first byte to its response's last.", .total),
        ]
    }

    private func family(_ name: String, _ help: String, _ measure: LatencyMeasure) -> MetricFamily {
        MetricFamily(
            "request_" + name, help, .histogram,
            LatencyClass.allCases.map { latencyClass in
                MetricSample([("class", "\(latencyClass.name)")], .distribution(self[measure, latencyClass]))
            })
    }
}
