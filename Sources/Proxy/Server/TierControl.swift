import Bytes
import Libevent
import Logging
import Routing
import SharedTier

/// What the whole server does for the shared tier: it follows the log of purges, and has the engine's bounds reviewed at
/// the start. Owned by the server, confined to the control loop.
final class TierControl {
    let purges: TierPurges
    private var review: EngineReview?

    /// `nil` if the settings have no shared tier.
    /// - Parameter purge: purges here, and nowhere else.
    init?(
        _ settings: ProxySettings, _ shared: SharedState, on loop: EventLoop, purge: @escaping (PurgeRequest) -> Void
    ) {
        guard let tier = settings.sharedTier else { return nil }
        purges = TierPurges(tier, shared, on: loop, purge: purge)
        let log = shared.log
        TLSNotices.tell(of: tier, shared.tier.peers(of: tier), log)
        review = EngineReview(tier, on: loop) { [weak self] findings in
            self?.review = nil
            // That a server is not there is told by the connections that are made to it.
            for case .advice(let text) in findings { log.warning("shared tier: \(text)") }
        }
    }

    func stop() {
        purges.stop()
        review.take()?.stop()
    }
}

extension TierSnapshot {
    /// - Parameter engines: their URLs.
    init(of engines: [String], _ state: SharedTierState, at now: Int64) {
        let (isCurrent, pending, known) = state.history.withLock { ($0.isCurrent, $0.pendingCount, $0.knownCount) }
        self.init(
            engines: engines, nodes: state.nodes.snapshot, counts: state.counts,
            knowsPurges: isCurrent, pendingPurges: pending, knownPurges: known,
            purgeLag: max(0, now - state.purgesRead))
    }
}
