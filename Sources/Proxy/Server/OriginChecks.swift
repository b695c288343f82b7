import Coalescing
import Libevent
import Logging
import Routing
import Upstream

/// The checks of all origins that have some. Owned by the server, confined to the control loop.
///
/// ```
/// empty ─change→ checking ─change→ checking (origins that stay go on)        any ─stop→ empty
/// ```
final class OriginChecks {
    private let loop: EventLoop
    private let shared: SharedState
    /// Made for the first origin with checks.
    private var resolver: Resolver?
    private var current: [(origin: Origin, checks: HealthChecks)] = []

    init(_ shared: SharedState, on loop: EventLoop) {
        self.shared = shared
        self.loop = loop
    }

    /// Checks these origins from now on, and no others. Reports how the TLS of each is judged.
    func change(to origins: [Origin]) {
        for origin in origins { TLSNotices.tell(of: origin, shared.log) }
        resolver?.readFilesAgain()
        let former = current
        current = origins.compactMap { origin in
            guard let health = origin.settings.health else {
                origin.group.forgetChecks(at: loop.now)
                return nil
            }
            return former.first { $0.origin === origin } ?? (origin, begin(health, of: origin))
        }
        for (origin, checks) in former where !current.contains(where: { $0.origin === origin }) { checks.stop() }
    }

    /// Checks nothing any more. While this program drains, no check finds that a server is back: once none is in use,
    /// what the checks found does not count.
    func stop() {
        let stopped = current
        current = []
        for (origin, checks) in stopped {
            checks.stop()
            origin.group.endChecks(at: loop.now)
        }
    }

    private func begin(_ health: HealthSettings, of origin: Origin) -> HealthChecks {
        let resolver = resolver ?? Resolver(on: loop)
        self.resolver = resolver
        let (fetches, upstream, log) = (origin.fetches, origin.settings.name, shared.log)
        let checks = HealthChecks(
            health, of: origin.group, on: loop, resolver: resolver, names: shared.names,
            enqueue: { _ = fetches.enqueue(plain: $0, priority: .immediate) }
        ) { news, failure in
            let address = news.address.map { "address \($0) of " } ?? ""
            let subject = "upstream \(upstream): \(address)server \(news.server)"
            switch news.event {
            case .isBack(let time):
                log.notice(
                    "\(subject) is back after \(time / 1_000_000_000) s: \(Self.count(health.successes, "successful check")) of \(health.path) in a row"
                )
            case .isDown, .isEjected:
                log.warning(
                    "\(subject) is down after \(Self.count(health.failures, "failed check")) in a row, the last one: check of \(health.path): \(failure.map { "\($0)" } ?? "")"
                )
            }
        }
        checks.start()
        return checks
    }

    private static func count(_ number: Int, _ what: String) -> String { "\(number) \(what)\(number == 1 ? "" : "s")" }
}
