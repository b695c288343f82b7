import Bytes
import Logging
import Storage
import Synchronization
import Upstream

/// What all loops share: the store, the budget, the names, and a few counters. Everything in it is either immutable or
/// guards itself.
final class SharedState: Sendable {
    let store: ResponseStore
    let budget: MemoryBudget
    let log: Logger
    let storage: StorageSettings
    let keyHash: KeyedHash
    /// What responses said about their paths' queries (No-Vary-Search).
    let variations: SearchVariations
    let names: NameResolution
    let groups = GroupInvalidations()
    let callbacks = CallbackBarrier()
    /// The fetches that wait for memory of `budget`.
    let memoryLine = MemoryLine()
    private let liveOrigins = Guarded<[Origin]>([])
    /// Open client connections over all loops.
    let connections = Atomic<Int>(0)
    private let operations = Atomic<UInt64>(0)
    /// Of which removed fields the operator was told.
    let toldFields = Guarded(ToldFields.Record())
    /// Added to by each worker as it ends.
    let drained = Guarded(DrainReport())

    init(_ storage: StorageSettings, log: Logger) {
        self.storage = storage
        self.log = log
        names = NameResolution { [log] host, news in
            switch news {
            case .isStale(let error):
                log.warning("cannot look up \(host): \(error); the addresses known so far are used for up to a day")
            case .isBack: log.notice("\(host) can be looked up again")
            }
        }
        keyHash = .random()
        variations = SearchVariations(hash: keyHash)
        budget = MemoryBudget(limit: storage.memory)
        store = ResponseStore(settings: storage, budget: budget)
    }

    /// All that may have fetches in flight, also those of replaced settings. Set before any loop has the settings with
    /// a new one.
    var origins: [Origin] { liveOrigins.withLock { $0 } }

    /// - Parameter change: gives the origins that there are from now on. The list is emptied first, so that `change`
    ///   can see which origins nobody else retains.
    func changeOrigins(_ change: () -> [Origin]) {
        liveOrigins.withLock { origins in
            origins = []
            origins = change()
        }
    }

    /// A number for an operation, never 0.
    func nextOperation() -> UInt64 { operations.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Bytes of bodies that are on their way, or evicted while somebody reads them.
    var inFlightBytes: Int { max(0, budget.used - store.bytes) }

    /// Whether bodies in use take their share, and the windows' reserve, and there is nothing left to borrow: nothing
    /// new is fetched until some are done.
    var isOverloaded: Bool { store.room < min(Self.smallestLoan, storage.windowReserve / 2) }

    /// Whether what is read from an origin may have to wait outside the budget, so that little should be read at once:
    /// somebody waits for memory, before whom nobody else gets any, or there is less than one read may bring.
    var isMemoryShort: Bool { !memoryLine.isEmpty || store.room < UpstreamPools.bufferSize }

    /// Bytes: a body of a few pieces.
    private static let smallestLoan = 256 << 10

    /// Whether bodies on their way leave room for the content of requests that is read ahead: that takes no more than
    /// half of their share, so that clients who send slowly leave the rest to what others ask for, and nothing of what
    /// is reserved for windows.
    func hasRoomAhead(for bytes: Int) -> Bool {
        inFlightBytes + bytes <= storage.inUseLimit / 2 && store.mayKeepWhole(bytes)
    }

    /// Reserves `bytes` of the budget for content that is read ahead, at the expense of what is stored; or nothing, and
    /// answers `false`.
    func reserveAhead(_ bytes: Int) -> Bool {
        guard hasRoomAhead(for: bytes) else { return false }
        while !budget.reserve(bytes) {
            // Another loop may take what this makes free.
            guard store.makeRoom(bytes: bytes) else { return false }
        }
        return true
    }

    /// What a body that is not kept whole may retain for its slowest reader: less when memory runs short, so that many
    /// slow readers of large responses cannot take all of it.
    var streamingWindow: Int {
        budget.inUse > storage.inUseLimit / 2
            ? min(storage.streamingWindow, GrowingBody.smallestWindow) : storage.streamingWindow
    }
}
