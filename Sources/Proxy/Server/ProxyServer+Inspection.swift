import Bytes
import Coalescing
import Libevent
import Storage
public import Telemetry
import Upstream

/// How the proxy is. All on the control loop.
extension ProxyServer {
    /// Takes the shards' locks in turn: for the admin pages.
    public var snapshot: ServerSnapshot {
        ServerSnapshot(
            isDraining: isDraining, addresses: workers.addresses, workers: workers.count, counters: workers.counters,
            storage: shared.store.numbers, inFlightBytes: shared.inFlightBytes, memoryLimit: shared.budget.limit,
            clientLimit: loopSettings.settings.clients.maxConnections,
            upstreams: loopSettings.origins.map {
                ($0.settings.name, formerOrigins.snapshot(with: $0), $0.settings.maxConcurrentFetches)
            },
            accessLog: accessLog?.status.families() ?? [])
    }

    /// The fetches in flight at this moment.
    public var fetchesInFlight: [FetchDescription] {
        origins.flatMap { origin in
            origin.fetches.operations.compactMap { operation in
                (operation as? FetchOperation).map { FetchDescription($0, upstream: origin.settings.name) }
            }
        }
    }

    /// Asks every loop for its latencies; `completion` is called on the control loop with all of them merged.
    public func latencies(_ completion: @escaping (LatencySnapshot) -> Void) {
        workers.gather({ worker, answer in answer(worker.recorder.latency.snapshot()) }) {
            (snapshots: [LatencySnapshot]) in
            var merged = LatencySnapshot()
            for snapshot in snapshots { merged.merge(snapshot) }
            completion(merged)
        }
    }

    /// Asks every loop how it finds the servers of each upstream; `completion` is called on the control loop with what
    /// they see together, in the order of the configuration.
    public func servers(_ completion: @escaping ([UpstreamServers]) -> Void) {
        workers.gather({ worker, answer in answer(worker.pools.serverStates) }) {
            [unowned self] (answers: [[(origin: Origin, servers: [ServerState])]]) in
            completion(
                loopSettings.origins.map { origin in
                    var states = Array(repeating: ServerState(), count: origin.settings.servers.count)
                    for seen in answers.joined() where seen.origin === origin {
                        for (index, state) in seen.servers.enumerated() { states[index].merge(state) }
                    }
                    return UpstreamServers(
                        upstream: origin.settings.name, servers: Array(zip(origin.settings.servers, states)))
                })
        }
    }
}
