public import Coalescing
public import Libevent
public import Storage
public import Telemetry
import Bytes
import Upstream

/// The proxy at one moment, for people and scrapers. Its parts are read one after another, so they are of slightly different moments.
public struct ServerSnapshot: Sendable {
    /// Whether it accepts no more connections and is about to end.
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
    /// What each upstream has done and has in flight, in the order of the configuration.
    public let upstreams: [(name: String, operations: OperationQueueSnapshot)]
    /// Of the access log; empty without one.
    public let accessLog: [MetricFamily]
}

/// A fetch in flight, for people.
public struct FetchDescription: Sendable {
    /// As in the access log.
    public let number: UInt64
    public let upstream: String
    /// The primary cache key.
    public let key: String
    public let phase: String
    public let waiters: Int

    init(_ operation: FetchOperation, upstream: String) {
        number = operation.number
        self.upstream = upstream
        key = String(operation.key.primary.bytes)
        phase = operation.value == nil ? "\(operation.phase)" : "streaming"
        waiters = operation.clientCount
    }
}

/// How the proxy is. All on the control loop.
extension ProxyServer {
    /// Takes the shards' locks in turn: for the admin pages.
    public var snapshot: ServerSnapshot {
        ServerSnapshot(
            isDraining: isDraining, addresses: workers.addresses, workers: workers.count, counters: workers.counters,
            storage: shared.store.numbers, inFlightBytes: shared.inFlightBytes, memoryLimit: shared.budget.limit,
            upstreams: runtime.origins.map { ($0.settings.name, $0.fetches.snapshot) },
            accessLog: accessLog?.status.families() ?? [])
    }

    /// The fetches in flight at this moment.
    public var fetchesInFlight: [FetchDescription] {
        runtime.origins.flatMap { origin in
            origin.fetches.operations.compactMap { operation in
                (operation as? FetchOperation).map { FetchDescription($0, upstream: origin.settings.name) }
            }
        }
    }

    /// Asks every loop for its latencies; `completion` is called on the control loop with all of them merged.
    public func latencies(_ completion: @escaping (LatencySnapshot) -> Void) {
        workers.gather({ worker, answer in answer(worker.recorder.latency.snapshot()) }) { (snapshots: [LatencySnapshot]) in
            var merged = LatencySnapshot()
            for snapshot in snapshots { merged.merge(snapshot) }
            completion(merged)
        }
    }
}
