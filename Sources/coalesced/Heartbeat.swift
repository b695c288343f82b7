import Libevent
import Proxy

/// Tells the service manager, while the program serves, that no loop is stuck, and how much there is to do.
///
/// A worker's loop is asked from the control loop, and the control loop asks by a timer of its own. So the watchdog is
/// fed only if each of them has run since the last time; otherwise the service manager ends the program (systemd: with
/// SIGABRT after `WatchdogSec`). Owned by the daemon, confined to its loop.
final class Heartbeat {
    /// How often the state is told: often enough for an operator who looks twice.
    private static let statusInterval = Duration.seconds(5)
    /// A beat that is missed must not end the program.
    private static let beatsPerInterval = 4

    private let server: ProxyServer
    private let serviceManager: ServiceManager
    private let loop: EventLoop
    private var timers: [Timer] = []
    private var isAsking = false
    private var before: (requests: UInt64, hits: UInt64, fetches: UInt64)

    init(of server: ProxyServer, to serviceManager: ServiceManager, on loop: EventLoop) {
        self.server = server
        self.serviceManager = serviceManager
        self.loop = loop
        before = server.traffic
        guard serviceManager.isThere else { return }
        timers.append(
            loop.schedule(every: Self.statusInterval.nanoseconds) { [unowned self] in tellStatus() })
        guard let interval = serviceManager.watchdogInterval else { return }
        beat()
        timers.append(
            loop.schedule(every: (interval / Self.beatsPerInterval).nanoseconds) { [unowned self] in beat() })
    }

    deinit { for timer in timers { timer.cancel() } }

    private func beat() {
        // A loop that has not answered yet may be stuck.
        guard !isAsking else { return }
        isAsking = true
        server.hearFromAllWorkers { [weak self] in
            self?.isAsking = false
            self?.serviceManager.alive()
        }
    }

    private func tellStatus() {
        let now = server.traffic
        // A reload may have dropped an upstream with its counters.
        func growth(_ count: KeyPath<(requests: UInt64, hits: UInt64, fetches: UInt64), UInt64>) -> UInt64 {
            now[keyPath: count] >= before[keyPath: count] ? now[keyPath: count] - before[keyPath: count] : 0
        }
        let (requests, hits, fetches) = (growth(\.requests), growth(\.hits), growth(\.fetches))
        before = now
        let rate = Double(requests) / (Self.statusInterval / .seconds(1))
        var text = "\(rate < 10 ? "\((rate * 10).rounded() / 10)" : "\(Int(rate.rounded()))") requests/s"
        if requests > 0 {
            text += ", \(Self.percent(hits, of: requests)) hits"
            text += ", \(Self.percent(requests - min(fetches, requests), of: requests)) answered without a fetch"
        }
        serviceManager.status(text)
    }

    private static func percent(_ part: UInt64, of whole: UInt64) -> String {
        "\((Double(part) * 1000 / Double(whole)).rounded() / 10)%"
    }
}
