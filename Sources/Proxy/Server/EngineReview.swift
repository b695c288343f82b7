import Bytes
package import Libevent
import Redis
package import Routing
import TLS

/// Asks each server of the engine that the configuration names how its memory is bounded: for `check`, and for the log
/// at the start. Nothing else waits for the answer.
///
/// ```
/// asking ─each server has answered or cannot be reached, or time is up→ ended
/// any ─stop→ ended
/// ```
///
/// Confined to its loop. The owner keeps it until it has ended.
package final class EngineReview {
    /// What is worth telling the operator about one server.
    package enum Finding: Sendable, Equatable {
        /// It did not answer.
        case unreachable(String)
        /// Its memory is bounded badly, or this cannot be found out.
        case advice(String)

        /// One sentence, which begins with the server's URL.
        package var text: String {
            switch self {
            case .unreachable(let text), .advice(let text): text
            }
        }
    }

    private let loop: EventLoop
    private let completion: ([Finding]) -> Void
    private var clients: [RedisClient] = []
    /// By the server's place in the configuration. `nil` inside: nothing is worth telling.
    private var findings: [Int: Finding?] = [:]
    private var timer: Timer?
    private var hasEnded = false

    /// How long `check` waits, in nanoseconds.
    package static let patience: Int64 = 1_000_000_000

    /// - Parameters:
    ///   - limit: how long the servers have for their answers, in nanoseconds.
    ///   - completion: called once on the loop, never inside this call, with findings in the order of the configuration;
    ///     not at all after `stop`.
    package init(
        _ tier: SharedTierSettings, within limit: Int64 = EngineReview.patience, on loop: EventLoop,
        _ completion: @escaping ([Finding]) -> Void
    ) {
        self.loop = loop
        self.completion = completion
        var settings = RedisSettings()
        (settings.setUpLimit, settings.timeout, settings.stall) = (limit, limit, limit)
        let resolver = Resolver(on: loop)
        let tls = tier.isSecure ? TLSConnector(TLSPeers(tier.tls)) : nil
        clients = tier.engines.enumerated().map { index, location in
            RedisClient(
                RedisAddress(location), settings, tls: tls, on: loop, resolver: resolver,
                onEvent: { [weak self] in self?.happened($0, to: index, "\(location)") })
        }
        for client in clients { client.start() }
        timer = loop.schedule(after: limit) { [weak self] in self?.timeIsUp(tier.engines.map { "\($0)" }) }
    }

    /// Ends the connections. `completion` is not called any more.
    package func stop() {
        hasEnded = true
        timer?.cancel()
        for client in clients { client.stop() }
        clients = []
    }

    private func happened(_ event: RedisClient.Event, to index: Int, _ name: String) {
        guard !hasEnded else { return }
        switch event {
        case .ready:
            let command = RedisCommand("INFO")
            command.add("memory")
            clients[index].send(command) { [weak self] in self?.answered($0, index, name) }
        case .notConnected(let why), .lost(let why):
            note(.unreachable("\(name) cannot be asked for its bounds: \(why)"), index)
        case .breakerOpened, .breakerClosed, .dropped: break
        }
    }

    private func answered(_ reply: RedisReply, _ index: Int, _ name: String) {
        switch reply {
        case .value(let value):
            note(Self.advice(on: value.text.map(String.init) ?? "").map { .advice("\(name) \($0)") }, index)
        case .failed(.condition(.noPermission, _)):
            note(
                .advice(
                    "\(name) does not tell its bounds; give its user the right `+info`, or see to `maxmemory` there"),
                index)
        case .failed, .late, .unavailable:
            note(.unreachable("\(name) cannot be asked for its bounds: it does not answer `INFO memory`"), index)
        }
    }

    /// What there is to say about an answer to `INFO memory`; `nil`: nothing.
    static func advice(on answer: String) -> String? {
        func value(_ name: String) -> Substring? {
            answer.split(whereSeparator: \.isNewline).first { $0.hasPrefix("\(name):") }?.dropFirst(name.utf8.count + 1)
        }
        switch (value("maxmemory"), value("maxmemory_policy")) {
        case ("0", _):
            return
                "has no bound on its memory, and grows until the kernel ends it; set `maxmemory`, and `maxmemory-policy volatile-lfu`"
        case (_, "noeviction"):
            return
                "evicts nothing, so that nothing new is shared once it is full; set `maxmemory-policy volatile-lfu`"
        case (_, "allkeys-random"):
            return
                "may evict the log of purges, and then each machine empties its memory; set `maxmemory-policy volatile-lfu`"
        case (_, "volatile-ttl"):
            return
                "evicts first what is being fetched, since that expires soonest; set `maxmemory-policy volatile-lfu`"
        default: return nil
        }
    }

    private func timeIsUp(_ names: [String]) {
        for (index, name) in names.enumerated() where findings[index] == nil {
            findings[index] = .some(.unreachable("\(name) cannot be asked for its bounds: it has not answered in time"))
        }
        endIfComplete()
    }

    private func note(_ finding: Finding?, _ index: Int) {
        guard findings[index] == nil else { return }
        findings[index] = .some(finding)
        // A client that has just called is not stopped inside its call.
        loop.atIterationEnd { [weak self] in self?.endIfComplete() }
    }

    private func endIfComplete() {
        guard !hasEnded, findings.count == clients.count else { return }
        let all = clients.indices.compactMap { findings[$0] ?? nil }
        stop()
        completion(all)
    }
}
