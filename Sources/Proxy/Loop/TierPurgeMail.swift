import Bytes
import SharedTier

/// The purges that the machines of a shared tier know of, and the way to the log for those that are made here. Any thread.
final class TierPurgeMail: Sendable {
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
