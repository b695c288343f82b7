package import Bytes
package import Coalescing
package import Libevent
package import Storage
package import Telemetry

/// The state of the proxy at one moment, for operators and metric scrapers. Its parts are read one after another, so
/// their moments differ slightly.
package struct ServerSnapshot: Sendable {
    /// Whether the proxy drains: it accepts no more connections, or soon will not.
    package let isDraining: Bool
    /// The addresses at which clients connect, with the ports that the kernel chose.
    package let addresses: [SocketAddress]
    package let workers: Int
    /// The counters of all loops together.
    package let counters: CounterValues
    package let storage: StorageNumbers
    /// Bytes of bodies that are in flight, or were evicted while clients read them.
    package let inFlightBytes: Int
    /// The limit, in bytes, for stored bodies and bodies in flight together.
    package let memoryLimit: Int
    /// The most client connections.
    package let clientLimit: Int
    /// For each upstream: the counts of its finished fetches and of its fetches in flight, and how many may run at a
    /// time (`slots`). In the order of the configuration.
    package let upstreams: [(name: String, operations: OperationQueueSnapshot, slots: Int)]
    /// What concerns TLS; `nil` without a listener that speaks it.
    package let tls: TLSSnapshot?
    /// The shared tier; `nil` without one.
    package let tier: TierSnapshot?
    /// The metrics of the access log; empty without one.
    package let accessLog: [MetricFamily]
}

/// The listeners with TLS at one moment.
package struct TLSSnapshot: Sendable {
    /// Their addresses, with the ports that the kernel chose.
    package let addresses: [SocketAddress]
    /// In the order of the configuration.
    package let certificates: [CertificateReport]
}

/// The shared tier at one moment.
package struct TierSnapshot: Sendable {
    /// Where its engine is, without users and passwords.
    package let engines: [String]
    /// The servers that the loops have met.
    package let nodes: [TierNode]
    /// The counts of all loops.
    package let counts: TierCounts
    /// Whether this machine knows all purges; otherwise it uses nothing that the engine has.
    package let knowsPurges: Bool
    /// The purges made here that the others do not know yet.
    package let pendingPurges: Int
    /// The purges of the log that this machine knows.
    package let knownPurges: Int
    /// The nanoseconds since the log was last read to its end.
    package let purgeLag: Int64
}

/// Measurements that only the workers can take, each on its loop.
package struct WorkerUsage: Sendable {
    /// The latencies of all workers together.
    package var latencies = LatencySnapshot()
    /// Processor time of each worker in nanoseconds, in the order of their indexes.
    package var processorTimes: [UInt64] = []
    /// How long the iterations of each worker's loop took, in the same order.
    package var iterationTimes: [DurationCounts] = []
}

extension WorkerUsage {
    /// Of all workers, from that of each with its index.
    init(merging workers: [(index: Int, usage: WorkerUsage)]) {
        self.init()
        for (_, usage) in workers.sorted(by: { $0.index < $1.index }) {
            latencies.merge(usage.latencies)
            processorTimes += usage.processorTimes
            iterationTimes += usage.iterationTimes
        }
    }
}
