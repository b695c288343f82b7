public import Bytes
public import Coalescing
public import Libevent
public import Storage
public import Telemetry
public import Upstream

/// The state of the proxy at one moment, for operators and metric scrapers. Its parts are read one after another, so
/// their moments differ slightly.
public struct ServerSnapshot: Sendable {
    /// Whether the proxy drains: it accepts no more connections, or soon will not.
    public let isDraining: Bool
    /// The addresses at which clients connect, with the ports that the kernel chose.
    public let addresses: [SocketAddress]
    public let workers: Int
    /// The counters of all loops together.
    public let counters: CounterValues
    public let storage: StorageNumbers
    /// Bytes of bodies that are in flight, or were evicted while clients read them.
    public let inFlightBytes: Int
    /// The limit, in bytes, for stored bodies and bodies in flight together.
    public let memoryLimit: Int
    /// The most client connections.
    public let clientLimit: Int
    /// For each upstream: the counts of its finished fetches and of its fetches in flight, and how many may run at a
    /// time (`slots`). In the order of the configuration.
    public let upstreams: [(name: String, operations: OperationQueueSnapshot, slots: Int)]
    /// The metrics of the access log; empty without one.
    public let accessLog: [MetricFamily]
}

/// Measurements that only the workers can take, each on its loop.
public struct WorkerUsage: Sendable {
    /// The latencies of all workers together.
    public var latencies = LatencySnapshot()
    /// Processor time of each worker in nanoseconds, in the order of their indexes.
    public var processorTimes: [UInt64] = []
    /// How long the iterations of each worker's loop took, in the same order.
    public var iterationTimes: [DurationCounts] = []
}

/// The servers of one upstream at one moment, and their states as the loops see them.
public struct UpstreamServers: Sendable {
    /// The upstream's name.
    public let upstream: String
    /// In the order of the configuration.
    public let servers: [(server: UpstreamServer, state: ServerState)]
}
