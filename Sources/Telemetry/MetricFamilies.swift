/// Under which names the counters and histograms stand on the metrics page.

extension CounterValues {
    /// All counters, and the gauges that follow from them.
    public func families() -> [MetricFamily] {
        [
            labelled("requests", "Requests by method.", "method", Counter.requests),
            labelled("responses", "Responses sent, by class of status.", "class", Counter.responses),
            labelled("verdicts", "Requests by the cache's verdict.", "verdict", Counter.verdicts),
            labelled("coalescing", "Events at the table of operations in flight.", "event", Counter.coalescing),
            labelled("stores", "Responses given to the store, by what became of them.", "outcome", Counter.stores),
            single("upstream_fetches", "Exchanges begun with origins.", .upstreamFetches),
            single("upstream_retries", "Exchanges that repeated a failed one.", .upstreamRetries),
            labelled(
                "upstream_failures", "Failed exchanges with origins, by where they failed.", "kind",
                Counter.upstreamFailures),
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
