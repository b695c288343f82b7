public import Bytes
public import HTTPSemantics
import Synchronization

/// The responses in memory, found by primary key and kept below a ceiling of bytes.
///
/// Any thread may call any method. The index is split into shards by the upper bits of the key's hash; each has a
/// mutex, held for one probe by a look-up and for a few hundred instructions by a change; for longer where a table
/// grows, and where an eviction passes over many entries that are read. No method holds two at once, and what a change
/// drops is freed after the lock.
///
/// *Bytes.* Bodies reserve their own in the `MemoryBudget`; the store reserves for the rest. Callers that get no memory
/// call `makeRoom`: the shards give up the least valuable of their S3-FIFO queues, in turns.
///
/// What clients are being sent is not evicted, since that would free nothing. It is in use like a body on its way, and
/// what is in use takes no more than this at the expense of what rests (`StorageSettings`; free bytes it may have
/// beyond):
///
/// ```
/// 0                          inUseLimit                          windowLimit                     memory
/// ├─ any body in use ────────────┼─ those in windows, and small ones ─┼─ none: what rests is safe ────┤
///                                └────────── windowReserve ───────────┘
/// ```
///
/// | who wants memory | takes what is free | evicts | where it gets none |
/// | --- | --- | --- | --- |
/// | a body that is kept whole | but for the windows' reserve (`mayKeepWhole`) | up to the limit | goes on in a window |
/// | one in a window, or small | all of it | up to the limit and the reserve | waits; nothing new is fetched |
/// | an entry, beside its body | all of it | what rests beyond a quarter of the reserve | is not stored |
///
/// So neither fetches nor hits end because of slow readers, and what rests is safe from them. An eviction looks at no
/// more than `S3FIFO.mostLaps` entries of each shard that are read.
public final class ResponseStore: Sendable {
    struct LockedShard: ~Copyable, Sendable {
        let shard: Guarded<Shard>
        /// Bytes that the shard holds, for choosing whom to evict from without its lock.
        let bytes = Atomic<Int>(0)

        init(settings: StorageSettings, budget: MemoryBudget) {
            shard = Guarded(Shard(settings: settings, budget: budget))
        }
    }

    let shards: FixedArray<LockedShard>
    private let shift: UInt64
    private let budget: MemoryBudget
    private let settings: StorageSettings
    // Of the settings, worked out once: each response that begins asks for them.
    private let windowLimit: Int
    private let windowReserve: Int
    /// Bumped for each shard that is emptied: see `Generation`.
    private let epoch = Atomic<UInt32>(0)
    /// Whose turn it is to evict.
    private let turn = Atomic<Int>(0)
    private let stored = Atomic<Int>(0)
    /// What rested when something was last stored with the windows' reserve untouched.
    private let mostResting: Atomic<Int>

    /// - Parameter budget: shared with the bodies on their way.
    public init(settings: StorageSettings, budget: MemoryBudget) {
        precondition(settings.shards > 0 && settings.shards.nonzeroBitCount == 1, "shards must be a power of two")
        self.settings = settings
        windowLimit = settings.windowLimit
        windowReserve = settings.windowReserve
        self.budget = budget
        mostResting = Atomic(budget.limit)
        // One bit less, shifted twice: a single shard needs a shift by 64, which would be undone.
        shift = 63 - UInt64(settings.shards.trailingZeroBitCount)
        shards = FixedArray(count: settings.shards) { _ in LockedShard(settings: settings, budget: budget) }
    }

    // MARK: - Looking up

    /// All that is known under `key`. Allocates nothing.
    public func resource(_ key: CacheKey) -> CachedResource? {
        shards[shardIndex(of: key.hash)].shard.withLock { $0.table.resource(key) }
    }

    /// The whole response under `key` that answers a request with `fields`, as `CachedResource.response(matching:)`
    /// finds it. Allocates nothing, and retains only the response: the reference count of a popular one moves from core
    /// to core.
    /// - Parameter hash: of `key`, under the process's secret key (`KeyedHash`).
    public func response(hash: UInt64, key: Span<UInt8>, matching fields: FieldView) -> StoredResponse? {
        switch shards[shardIndex(of: hash)].shard.withLock({ $0.table.form(hash: hash, key: key) }) {
        case .only(let response): return response
        case .snapshot(let snapshot): return snapshot.response(matching: fields)
        case nil: return nil
        }
    }

    /// The generation of `key`, to be taken when a fetch begins, before its request is sent.
    /// - Parameter key: under which its response may be stored.
    public func generation(_ key: CacheKey) -> Generation {
        shards[shardIndex(of: key.hash)].shard.withLock { currentGeneration(key, $0) }
    }

    /// Whether the key was invalidated or removed since, alone or with everything. Where very many others were, it may
    /// count as one of them (`InvalidationLog`).
    public func wasInvalidated(_ key: CacheKey, since former: Generation) -> Bool {
        shards[shardIndex(of: key.hash)].shard.withLock { wasInvalidated(key, since: former, $0) }
    }

    // MARK: - Storing

    /// Stores `response`, in the place of the same variant if there is one, and evicts what must go for it. Removes
    /// those of the key's markers that the response contradicts.
    /// - Parameters:
    ///   - generation: of the moment the fetch began.
    ///   - requestTime: when its request was sent. A more recent response that arrived since, from an overtaking fetch,
    ///     stays (RFC 9111 §4).
    ///   - popularity: how many more clients than one waited for it; counts like hits.
    public func store(
        _ response: StoredResponse, under key: CacheKey, generation: Generation, requestTime: Moment,
        popularity: Int = 0
    ) -> StoreOutcome {
        guard response.bodyLength != nil else { return .incomplete }
        let response = response.packed(under: key)
        guard response.objectSize <= settings.objectLimit else { return .tooLarge }
        response.setFrequency(min(StoredResponse.highestFrequency, UInt8(clamping: popularity)))
        return change(key, reserving: cost(of: response)) { shard in
            guard !self.wasInvalidated(key, since: generation, shard),
                !shard.holdsNewer(than: response, since: requestTime, under: key)
            else { return .outdated }
            shard.store(response, under: key)
            return .stored
        } ?? .noRoom
    }

    /// Adds the parts in `response` to those of its variant, or replaces those if they are of another representation.
    /// Parts that make up the whole become an ordinary response.
    /// - Parameters:
    ///   - range: what it brings anew: it stays when others must go to keep the parts below
    ///     `StorageSettings.objectLimit`.
    ///   - generation: of the moment the fetch began.
    ///   - requestTime: when its request was sent.
    public func storeParts(
        _ response: StoredResponse, bringing range: Range<Int>, under key: CacheKey, generation: Generation,
        requestTime: Moment
    ) -> StoreOutcome {
        guard let parts = response.parts, !range.isEmpty else { return .incomplete }
        guard response.objectSize <= settings.objectLimit else { return .tooLarge }
        // What it becomes together with what is stored is known only under the lock.
        return change(key, reserving: cost(of: response) + parts.mostJoinedCharge) { shard in
            !self.wasInvalidated(key, since: generation, shard)
                && shard.storeParts(response, parts, bringing: range, since: requestTime, under: key)
                ? .stored : .outdated
        } ?? .noRoom
    }

    /// Drops this response, or these parts, if still there: the origin contradicted it. Others under the key stay, and
    /// fetches in flight are stored as usual.
    public func drop(_ former: StoredResponse, of key: CacheKey) { change(key) { $0.drop(former, of: key) } }

    /// Puts `response` in the place of `former`, whose body it shares, after a validation (RFC 9111 §4.3.4).
    /// - Parameter isConfirmed: whether the origin confirmed what GET gets, which several may have: some of the key's
    ///   markers may no longer hold. False where its response only told something of what is stored.
    public func freshen(
        _ former: StoredResponse, by response: StoredResponse, under key: CacheKey, generation: Generation,
        isConfirmed: Bool
    ) -> StoreOutcome {
        let response = response.packed(under: key)
        return change(key, reserving: cost(of: response)) { shard in
            guard !self.wasInvalidated(key, since: generation, shard) else { return .outdated }
            return shard.freshen(former, with: response, under: key, isConfirmed: isConfirmed) ? .stored : .gone
        } ?? .noRoom
    }

    // MARK: - Notes

    /// Marks `key`: what `reason` says counts up to `until` (`KeyMarkers`). Does nothing where there is no room for it.
    /// - Parameter until: nanosecond of the monotonic clock.
    public func mark(_ key: CacheKey, _ reason: NotSharedReason, until: Int64, at now: Moment) {
        _ = change(key, reserving: KeyMarkers.mostCharge) { shard in
            shard.mark(key) { $0.set(reason, until: until, at: now) }
        }
    }

    /// Forgets the markers of `key` that `response`, which several may have, contradicts. Any thread.
    /// - Parameter keepsWhole: whether it brings the whole representation, and that is kept.
    public func forgetMarkers(of key: CacheKey, after response: ResponseFacts, keepsWhole: Bool) {
        // Most keys have none, and to see that costs less than a change.
        guard let markers = resource(key)?.markers, !markers.stand(after: response, keepsWhole: keepsWhole) else {
            return
        }
        change(key) { shard in
            shard.mark(key) { current in
                // Not what was found out since.
                if current == markers { current.forget(after: response, keepsWhole: keepsWhole) }
            }
        }
    }

    /// Remembers the `Vary` rule of the responses to `key`, so that requests can be told apart while the first of them
    /// is still on its way. Not where there is no room for it.
    public func learn(_ rule: VaryRule, for key: CacheKey) {
        _ = change(key, reserving: CachedResource.charge(of: rule)) { $0.learn(rule, for: key) }
    }

    // MARK: - Removing

    /// Invalidates `key` for an unsafe request (RFC 9111 §4.4): its responses are dropped and no fetch that has begun
    /// is stored. Its `Vary` rules and its markers are kept.
    public func invalidate(_ key: CacheKey) { _ = change(key) { $0.invalidate(key, keepsNotes: true) } }

    /// Invalidates `key` for an unsafe request whose own response is to be stored afterwards (RFC 9110 §9.3.3).
    /// - Parameter former: of the moment its fetch began.
    /// - Returns: what that response is stored under; `nil` when something else invalidated the key since then: the
    ///   response may be older than that, so it is not stored.
    public func invalidate(_ key: CacheKey, after former: Generation) -> Generation? {
        change(key) { shard in
            let isAlone = !self.wasInvalidated(key, since: former, shard)
            _ = shard.invalidate(key, keepsNotes: true)
            return isAlone ? self.currentGeneration(key, shard) : nil
        }
    }

    /// Forgets everything about `key`, as a purge does; no fetch that has begun is stored.
    /// - Returns: the number of responses dropped.
    @discardableResult
    public func remove(_ key: CacheKey) -> Int { change(key) { $0.invalidate(key, keepsNotes: false) } }

    /// Forgets everything in a shard; no fetch that has begun is stored, in any.
    /// - Returns: the number of responses dropped.
    func removeAll(inShard index: Int) -> Int {
        // First, so that what the shard stores after its turn is compared with the new number.
        epoch.add(1, ordering: .sequentiallyConsistent)
        return change(shards[index], reserved: 0) { $0.removeAll() }
    }

    // MARK: - Memory

    /// Makes `bytes` free in the budget for a body on its way, evicting the least valuable entries.
    ///
    /// Bodies in use get no more than `StorageSettings.windowLimit` at the expense of what rests.
    /// - Returns: `false` when that is impossible: the caller waits or gives up.
    public func makeRoom(bytes: Int) -> Bool {
        evict { budget.limit - budget.used < bytes && budget.inUse + bytes <= windowLimit }
        return budget.limit - budget.used >= bytes
    }

    /// Whether a body that is kept whole may have `bytes` more and leaves the windows what is reserved for them.
    public func mayKeepWhole(_ bytes: Int) -> Bool { room(without: bytes) >= windowReserve }

    /// Bytes that bodies in windows can still have.
    public var room: Int { room(without: 0) }

    /// - Parameter bytes: which somebody else has by then.
    private func room(without bytes: Int) -> Int {
        let (used, resting) = (budget.used, budget.resting)
        let free = budget.limit - used
        let inUse = used - resting + bytes
        let evictable = min(resting - max(0, bytes - free), windowLimit - inUse)
        return max(0, free - bytes) + max(0, evictable)
    }

    /// Bytes of all that is stored, bodies included.
    public var bytes: Int { stored.load(ordering: .relaxed) }

    /// What is stored and what was evicted. Takes each shard's lock in turn: for the admin pages, not for requests. Any
    /// thread.
    public var numbers: StorageNumbers {
        var numbers = StorageNumbers()
        for index in 0..<shards.count { shards[index].shard.withLock { numbers.add($0) } }
        return numbers
    }

    /// Evicts as long as `isNeeded` says so and there is something to evict.
    private func evict(while isNeeded: () -> Bool) {
        var (empty, index) = (0, 0)
        while empty < shards.count, budget.resting > 0, isNeeded() {
            // What makes one fuller may be in use: then each other is asked, in turn.
            index = empty == 0 ? fullerShard() : (index + 1) & (shards.count - 1)
            let evicted = change(shards[index], reserved: 0) { $0.evict() }
            empty = evicted ? 0 : empty + 1
        }
    }

    /// Evicts until what rests takes no more than a quarter of the windows' reserve, while bodies use that.
    private func keepReserve() {
        let resting = budget.resting
        guard room < windowReserve else {
            if mostResting.load(ordering: .relaxed) != resting { mostResting.store(resting, ordering: .relaxed) }
            return
        }
        let most = mostResting.load(ordering: .relaxed) + windowReserve / 4
        evict { budget.resting > most && room < windowReserve }
    }

    /// The fuller of the two whose turn it is: shards stay about equally full, also when they hold few responses each.
    private func fullerShard() -> Int {
        let first = turn.wrappingAdd(1, ordering: .relaxed).oldValue
        let (one, other) = (first & (shards.count - 1), (first &+ 1) & (shards.count - 1))
        return shards[one].bytes.load(ordering: .relaxed) >= shards[other].bytes.load(ordering: .relaxed) ? one : other
    }

    // MARK: - Under a shard's lock

    private func shardIndex(of hash: UInt64) -> Int { Int(truncatingIfNeeded: (hash >> shift) >> 1) }

    private func currentGeneration(_ key: CacheKey, _ shard: borrowing Shard) -> Generation {
        Generation(ofStore: epoch.load(ordering: .sequentiallyConsistent), ofKey: shard.invalidations.mark(key.hash))
    }

    private func wasInvalidated(_ key: CacheKey, since former: Generation, _ shard: borrowing Shard) -> Bool {
        former.ofStore != epoch.load(ordering: .sequentiallyConsistent)
            || shard.invalidations.contains(key.hash, since: former.ofKey)
    }

    /// The most that an entry for `response` takes beside its body.
    private func cost(of response: StoredResponse) -> Int {
        response.overhead + CachedResource.charge(of: response.varyRule) + Charge.variant
    }

    /// Makes a change that may need memory, for a new resource and `cost`. `nil` when there is none: then nothing has
    /// happened.
    private func change<Result: Sendable>(_ key: CacheKey, reserving cost: Int, _ body: (inout Shard) -> Result)
        -> Result?
    {
        let reserved = cost + Charge.resource + key.bytes.count
        keepReserve()
        while !budget.reserve(reserved) {
            evict { budget.limit - budget.used < reserved }
            guard budget.limit - budget.used >= reserved else { return nil }
        }
        return change(shards[shardIndex(of: key.hash)], reserved: reserved, body)
    }

    /// Makes a change that takes no memory.
    func change<Result: Sendable>(_ key: CacheKey, _ body: (inout Shard) -> Result) -> Result {
        change(shards[shardIndex(of: key.hash)], reserved: 0, body)
    }

    /// Changes a shard under its lock; afterwards frees what it dropped and gives back what was reserved in excess.
    private func change<Result: Sendable>(
        _ locked: borrowing LockedShard, reserved: Int, _ body: (inout Shard) -> Result
    ) -> Result {
        var dropped = Dropped()
        let (result, charge, bytes) = locked.shard.withLock { shard in
            let (charged, bytes) = (shard.charged, shard.bytes)
            let result = body(&shard)
            swap(&dropped, &shard.dropped)
            locked.bytes.store(shard.bytes, ordering: .relaxed)
            return (result, shard.charged - charged, shard.bytes - bytes)
        }
        stored.add(bytes, ordering: .relaxed)
        budget.rest(charge)
        dropped.table.forEach { resource in
            for variant in resource.allVariants { variant.response.endStoring() }
        }
        // Anything beyond was not reserved, and would exceed the ceiling.
        assert(charge <= reserved, "a change took \(charge) bytes of \(reserved) reserved")
        budget.release(reserved - charge)
        return result
    }
}
