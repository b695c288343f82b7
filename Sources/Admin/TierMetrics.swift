import Proxy
import Telemetry

/// The metric families about the shared tier.
extension TierSnapshot {
    func families() -> [MetricFamily] {
        [
            gauge("shared_connections", "Connections to servers of the engine that are ready.", \.connections),
            gauge(
                "shared_connections_wanted", "Connections to servers of the engine that there should be.", \.wanted),
            gauge(
                "shared_breakers_open", "Connections that send nothing, since the server does not answer in time.",
                \.openBreakers),
            .gauge("shared_knows_purges", "1 if all purges are known, otherwise 0.", knowsPurges ? 1 : 0),
            .gauge(
                "shared_purge_lag_seconds", "Time since the log of purges was last read to its end.",
                [MetricSample([], .nanoseconds(UInt64(clamping: purgeLag)))]),
            .gauge("shared_purges_known", "Purges of the log that this machine knows.", UInt64(knownPurges)),
            .gauge("shared_purges_pending", "Purges that other machines do not know yet.", UInt64(pendingPurges)),
            .counter(
                "shared_fetches", "Fetches that asked the shared tier, by event.",
                TierEvent.allCases.map { MetricSample([("event", $0.name)], .whole(counts[$0])) }),
            .counter(
                "shared_bytes", "Bytes of content, by direction.",
                [
                    MetricSample([("direction", "read")], .whole(counts.bytesRead)),
                    MetricSample([("direction", "written")], .whole(counts.bytesWritten)),
                ]),
            MetricFamily(
                "shared_reply_seconds", "Time that the engine took to answer what clients waited for.", .histogram,
                [MetricSample([], .durations(counts.replyTimes))]),
        ]
    }

    private func gauge(_ name: String, _ help: String, _ value: (TierNode) -> Int) -> MetricFamily {
        .gauge(name, help, nodes.map { MetricSample([("node", $0.name)], .whole(UInt64(clamping: value($0)))) })
    }

    /// The connections that are ready, to all servers.
    var connections: Int { nodes.reduce(0) { $0 + $1.connections } }
}
