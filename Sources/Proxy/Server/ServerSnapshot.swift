public import Bytes
public import Coalescing
public import Libevent
public import Storage
public import Telemetry
public import Upstream

/// The proxy at one moment, for people and scrapers. Its parts are read one after another, so they are of slightly
/// different moments.
public struct ServerSnapshot: Sendable {
    /// Whether it is about to end: it accepts no more connections, or soon will not.
    public let isDraining: Bool
    /// Where clients connect, with the ports that were chosen.
    public let addresses: [SocketAddress]
    public let workers: Int
    /// The counters of all loops together.
    public let counters: CounterValues
    public let storage: StorageNumbers
    /// Bytes of bodies that are on their way, or evicted while somebody reads them.
    public let inFlightBytes: Int
    /// Bytes: the ceiling for what is stored and what is on its way.
    public let memoryLimit: Int
    /// How many clients may be connected.
    public let clientLimit: Int
    /// What each upstream has done and has in flight, and how many fetches from it may run at a time, in the order of the
    /// configuration.
    public let upstreams: [(name: String, operations: OperationQueueSnapshot, slots: Int)]
    /// The metrics of the access log; empty without one.
    public let accessLog: [MetricFamily]
}

/// What only the workers themselves can tell, each on its loop.
public struct WorkerUsage: Sendable {
    /// The latencies of all of them together.
    public var latencies = LatencySnapshot()
    /// Nanoseconds of processor time of each, in the order of their indexes.
    public var processorTimes: [UInt64] = []
    /// How long the iterations of each one's loop took, in the same order.
    public var iterationTimes: [DurationCounts] = []
}

/// The servers of one upstream at one moment, and how the loops find them.
public struct UpstreamServers: Sendable {
    /// The upstream's name.
    public let upstream: String
    /// In the order of the configuration.
    public let servers: [(server: UpstreamServer, state: ServerState)]
}
