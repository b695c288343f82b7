import Bytes
import Libevent
import Logging
import Routing
import Storage
import Synchronization
import Upstream

/// The state that all loops share: the store, the memory budget, the resolved names, and a few counters. Every member
/// is immutable or synchronizes its own accesses.
final class SharedState: Sendable {
    let store: ResponseStore
    let budget: MemoryBudget
    let log: Logger
    /// The control loop, for work that must not hold up clients; `nil` in tests without one.
    let control: LoopHandle?
    let storage: StorageSettings
    let keyHash: KeyedHash
    /// The `No-Vary-Search` rules of paths, learnt from responses.
    let variations: SearchVariations
    let names: NameResolution
    let limiter = RateLimiter()
    /// The tags of responses, by which they are purged; those of `store`.
    let tags: TagTable
    let callbacks = CallbackBarrier()
    let purgeMail = PurgeMail()
    /// What the loops know of the tier that other machines share with this one.
    let tier: SharedTierState
    /// The fetches that wait for memory of `budget`.
    let memoryLine = MemoryLine()
    private let liveOrigins = Guarded<[Origin]>([])
    let clientCounts = ClientCounts()
    /// Open client connections over all loops.
    let connections = Atomic<Int>(0)
    private let operations = Atomic<UInt64>(0)
    /// The removed fields that were reported to the operator.
    let reportedFields = Guarded(ReportedFields())
    /// Each worker adds its counts when it ends.
    let drained = Guarded(DrainReport())

    init(_ storage: StorageSettings, log: Logger, control: LoopHandle? = nil) {
        self.control = control
        self.storage = storage
        self.log = log
        tier = SharedTierState(log: log)
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
        tags = TagTable(hash: keyHash)
        store = ResponseStore(settings: storage, budget: budget, tags: tags)
    }

    /// All origins that may have fetches in flight, also origins of replaced settings. A new origin is added before any
    /// loop has the settings with it.
    var origins: [Origin] { liveOrigins.withLock { $0 } }

    /// - Parameter change: returns the new list of origins. The list is emptied first, so that `change` can see which
    ///   origins have no other reference.
    func changeOrigins(_ change: () -> [Origin]) {
        liveOrigins.withLock { origins in
            origins = []
            origins = change()
        }
    }

    /// The number of a new operation, never 0.
    func nextOperation() -> UInt64 { operations.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Bytes of bodies that are in flight, or were evicted while clients read them.
    var inFlightBytes: Int { max(0, budget.used - store.bytes) }

    /// Whether bodies in use take all of their share and of the windows' reserve, so that none is left to borrow. No
    /// new fetch begins until some of these bodies are done.
    var isOverloaded: Bool { store.room < min(Self.smallestLoan, storage.windowReserve / 2) }

    /// Whether bytes read from an origin may have to wait outside the budget, so that reads should be small: another
    /// fetch waits for memory, and gets it first, or less memory is left than one read may take.
    var isMemoryShort: Bool { !memoryLine.isEmpty || store.room < UpstreamPools.bufferSize }

    /// Bytes of a body of a few pieces.
    private static let smallestLoan = 256 << 10

    /// Whether bodies in flight leave room to read the content of requests ahead. Such content takes no more than half
    /// of the share of bodies in use, so that slow uploads leave the other half for responses, and takes none of the
    /// windows' reserve.
    func hasRoomAhead(for bytes: Int) -> Bool {
        inFlightBytes + bytes <= storage.inUseLimit / 2 && store.mayKeepWhole(bytes)
    }

    /// Reserves `bytes` of the budget for content that is read ahead, evicting stored responses if necessary. Returns
    /// `false`, and reserves nothing, if there is no room.
    func reserveAhead(_ bytes: Int) -> Bool {
        guard hasRoomAhead(for: bytes) else { return false }
        while !budget.reserve(bytes) {
            // Retry, since another loop may take the memory just evicted.
            guard store.makeRoom(bytes: bytes) else { return false }
        }
        return true
    }

    /// Bytes that a body which is not kept whole may retain for its slowest reader: fewer when memory is short, so that
    /// many slow readers of large responses cannot take all of it.
    var streamingWindow: Int {
        budget.inUse > storage.inUseLimit / 2
            ? min(storage.streamingWindow, GrowingBody.smallestWindow) : storage.streamingWindow
    }
}
