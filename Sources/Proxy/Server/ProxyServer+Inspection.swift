import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Logging
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
            tls: certificates.snapshot(at: targets, loopSettings.settings),
            tier: tier.map { TierSnapshot(of: $0.purges.engines, shared.tier, at: control.now) },
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
        }) { completion(WorkerUsage(merging: $0)) }
    }

    /// The servers of each upstream, in the order of the configuration; `completion` is called on the control loop. Only
    /// the connections are asked from the loops.
    package func servers(_ completion: @escaping ([UpstreamServers]) -> Void) {
        workers.gather({ worker, answer in answer(worker.context.pools.countConnections()) }) {
            [unowned self] (answers: [[UpstreamPool.ConnectionCount]]) in
            let connections = Array(answers.joined())
            completion(loopSettings.origins.map { UpstreamServers($0.group, connections, at: control.now) })
        }
    }

    /// Lets a server have no new requests, or have requests again. Its idle connections are closed, its requests in
    /// flight go on. `completion` is called on the control loop, perhaps at once.
    package func drain(_ request: DrainRequest, _ completion: @escaping (DrainAnswer) -> Void) {
        let server: DrainedServer
        do throws(DrainedServer.Unknown) {
            server = try DrainedServer(named: request, in: loopSettings.origins, at: control.now)
        } catch {
            return completion(.unknown(error.text))
        }
        let isNews = server.origin.group.drain(server.target, request.isDrained, at: control.now)
        workers.gather({ [target = server.target] worker, answer in
            worker.context.pools.update()
            let connections = worker.context.pools.countConnections().filter { target.includes($0.place) }
            answer(connections.reduce(0) { $0 + $1.inUse })
        }) { [unowned self] (inUse: [Int]) in
            let outcome = server.outcome(isDrained: request.isDrained, inFlight: inUse.reduce(0, +), at: control.now)
            if isNews { shared.log.notice("\(server.name) \(outcome)") }
            completion(.done("\(server.name) \(outcome)"))
        }
    }
}
