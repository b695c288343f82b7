import Bytes
import SharedTier

/// What all loops know of the shared tier: its purges, with the way to the log for those that are made here, and its
/// counts. Any thread.
final class SharedTierState: Sendable {
    let counts = TierCounts()
    let history = Guarded(TierPurgeHistory())
    private let writer = Guarded<(@Sendable () -> Void)?>(nil)

    /// From now on `write` is called when there is a purge to be written.
    func open(_ write: @escaping @Sendable () -> Void) { writer.withLock { $0 = write } }

    func close() { writer.withLock { $0 = nil } }

    /// A purge was made here, and counts from now on. Nothing happens without a shared tier.
    func add(_ purge: TierPurge) {
        guard let write = writer.withLock({ $0 }) else { return }
        history.withLock { $0.add(purge) }
        write()
    }
}
