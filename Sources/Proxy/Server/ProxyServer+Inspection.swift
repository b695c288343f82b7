import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry
import Upstream

/// The state of the proxy, for its operator. All of these are called on the control loop.
extension ProxyServer {
    /// The snapshot for the admin pages. Takes the locks of the store's shards one after another.
    package var snapshot: ServerSnapshot {
        ServerSnapshot(
            isDraining: isDraining, addresses: addresses, workers: workers.count, counters: workers.counters,
            storage: shared.store.numbers, inFlightBytes: shared.inFlightBytes, memoryLimit: shared.budget.limit,
            clientLimit: loopSettings.settings.clients.maxConnections,
            upstreams: loopSettings.origins.map {
                ($0.settings.name, formerOrigins.snapshot(with: $0), $0.settings.maxConcurrentFetches)
            },
            accessLog: accessLog?.status.families() ?? [])
    }

    /// The fetches in flight at this moment, the oldest first.
    package var fetchesInFlight: [FetchDescription] {
        shared.origins.flatMap { origin in
            origin.fetches.operations.compactMap { operation in
                (operation as? FetchOperation).map { FetchDescription($0, upstream: origin.settings.name) }
            }
        }.sorted { ($0.made, $0.number) < ($1.made, $1.number) }
    }

    /// Calls `completion` on the control loop when every worker's loop has run a job since: none is stuck.
    package func hearFromAllWorkers(_ completion: @escaping () -> Void) {
        workers.gather({ _, answer in answer(()) }) { (_: [Void]) in completion() }
    }

    /// The requests that clients have sent, how many of them were hits, and how many exchanges with origins were begun.
    package var traffic: (requests: UInt64, hits: UInt64, fetches: UInt64) {
        let counters = workers.counters
        let upstreams = loopSettings.origins.map { counters[upstream: $0.settings.name] }
        return (
            Method.counted.reduce(0) { $0 + counters[.requests($1)] },
            upstreams.reduce(0) { $0 + $1[.verdicts(.hit)] }, upstreams.reduce(0) { $0 + $1[.fetches] }
        )
    }

    /// Asks every loop for its latencies, the times of its iterations and its thread's processor time; `completion` is
    /// called on the control loop.
    package func workerUsage(_ completion: @escaping (WorkerUsage) -> Void) {
        workers.gather({ worker, answer in
            answer(
                (
                    worker.index,
                    WorkerUsage(
                        latencies: worker.context.recorder.latency.snapshot(),
                        processorTimes: [ProcessUsage.processorTimeOfThisThread],
                        iterationTimes: [worker.context.loop.iterationTimes])
                ))
        }) { (answers: [(worker: Int, usage: WorkerUsage)]) in
            completion(
                answers.sorted { $0.worker < $1.worker }.reduce(into: WorkerUsage()) { all, answer in
                    all.latencies.merge(answer.usage.latencies)
                    all.processorTimes += answer.usage.processorTimes
                    all.iterationTimes += answer.usage.iterationTimes
                })
        }
    }

    /// Asks every loop for its connections to the servers of each upstream; `completion` is called on the control loop
    /// with the states of the servers, in the order of the configuration.
    package func servers(_ completion: @escaping ([UpstreamServers]) -> Void) {
        workers.gather({ worker, answer in answer(worker.context.pools.connections) }) {
            [unowned self] (answers: [[UpstreamPool.ConnectionCount]]) in
            let (connections, now) = (Array(answers.joined()), control.now)
            completion(
                loopSettings.origins.map { origin in
                    let places = origin.group.states(at: now)
                    let states = origin.settings.servers.enumerated().map { index, server in
                        ServerState(places.filter { $0.server == index }, isNamed: server.address == nil, connections)
                    }
                    return UpstreamServers(
                        upstream: origin.settings.name, servers: Array(zip(origin.settings.servers, states)))
                })
        }
    }
}
