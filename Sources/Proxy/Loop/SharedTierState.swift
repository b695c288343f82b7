import Bytes
import Logging
import Routing
import SharedTier
import Synchronization
import TLS

/// What all loops know of the shared tier: its purges, with the way to the log for those that are made here, and its
/// counts, and its servers. Any thread.
final class SharedTierState: Sendable {
    let counts = TierCounts()
    let nodes: TierNodes
    let history = Guarded(TierPurgeHistory())
    /// The tokens of the fetches whose bodies other machines may read from this one, with the primary keys.
    private let announced = Guarded<[ByteSlice: ByteSlice]>([:])
    private let writer = Guarded<(@Sendable () -> Void)?>(nil)
    private let lastReading = Atomic<Int64>(0)

    private let peers = Guarded<TLSPeers?>(nil)

    init(log: Logger) { nodes = TierNodes(log: log) }

    /// When the log of purges was last read to its end, or was first to be read, in nanoseconds of the loops' clock.
    var purgesRead: Int64 {
        get { lastReading.load(ordering: .relaxed) }
        set { lastReading.store(newValue, ordering: .relaxed) }
    }

    /// How certificates of the engine are judged; `nil` if it does not speak TLS. Made by the first loop that asks, for
    /// all: a start is the only time for that, since the settings of the tier are read there.
    func peers(of settings: SharedTierSettings) -> TLSPeers? {
        guard settings.isSecure else { return nil }
        return peers.withLock { peers in
            let made = peers ?? TLSPeers(settings.tls)
            peers = made
            return made
        }
    }

    /// From now on `write` is called when there is a purge to be written.
    func open(_ write: @escaping @Sendable () -> Void) { writer.withLock { $0 = write } }

    func close() { writer.withLock { $0 = nil } }

    /// Other machines may read the body of the fetch under `token`, of the response with this primary key.
    func announce(_ token: ByteSlice, of key: ByteSlice) { announced.withLock { $0[token] = key } }

    /// The fetch under `token` has ended.
    func withdraw(_ token: ByteSlice) { announced.withLock { $0[token] = nil } }

    /// Whether this machine fetches the response with this primary key under `token`, and has announced it.
    func hasAnnounced(_ token: ByteSlice, of key: ByteSlice) -> Bool { announced.withLock { $0[token] == key } }

    /// A purge was made here, and counts from now on. Nothing happens without a shared tier.
    func add(_ purge: TierPurge) {
        guard let write = writer.withLock({ $0 }) else { return }
        history.withLock { $0.add(purge) }
        write()
    }
}
