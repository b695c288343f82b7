import Proxy
import Telemetry

/// The metric families about listeners with TLS.
extension TLSSnapshot {
    /// - Parameter counters: of all loops together.
    func families(_ counters: CounterValues) -> [MetricFamily] {
        counters.handshakeFamilies() + [
            .gauge(
                "certificate_expiry_seconds",
                "Unix time at which the certificate expires, by its file; as it was when the settings were read.",
                certificates.map {
                    MetricSample([("certificate", $0.path)], .whole(UInt64(clamping: $0.notAfter)))
                })
        ]
    }
}
