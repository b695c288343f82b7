import Proxy
import Telemetry

/// The metric families about the shared tier.
extension TierSnapshot {
    func families() -> [MetricFamily] {
        [
            .gauge("shared_connections", "Connections to the engine that are ready.", UInt64(max(0, counts.connected))),
            .gauge("shared_knows_purges", "1 if all purges are known, otherwise 0.", knowsPurges ? 1 : 0),
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
        ]
    }
}
