public import Bytes
public import HTTPSemantics
import Synchronization

/// The responses in memory, found by primary key and kept below a ceiling of bytes.
///
/// Any thread may call any method. The index is split into shards by the upper bits of the key's hash. Each shard has a
/// mutex. A look-up holds it for one probe, a change for a few hundred instructions; a change holds it longer if a
/// table grows, or if an eviction passes over many entries that are being sent. No method of the store holds two
/// mutexes at once. Memory that a change drops is freed after the mutex is opened.
///
/// *Bytes.* Bodies reserve their own bytes in the `MemoryBudget`; the store reserves for everything else. Callers that
/// get no memory call `makeRoom`: the shards then evict, in turn, the least valuable entries of their S3-FIFO queues.
///
/// A response that is being sent to clients is not evicted, since that would free no memory. Its bytes are *in use*,
/// like those of a body on its way; all other stored bytes are *resting* (`MemoryBudget`). Bodies in use may displace
/// resting bytes only up to these limits (`StorageSettings`). Beyond the limits, bodies in use may take free bytes:
///
/// ```
/// 0                          inUseLimit                          windowLimit                     memory
/// ├─ any body in use ────────────┼─ bodies in windows, small bodies ──┼─ none: resting bytes are safe ┤
///                                └────────── windowReserve ───────────┘
/// ```
///
/// | memory for | takes of the free bytes | evicts | without memory |
/// | --- | --- | --- | --- |
/// | a body kept whole | all but the windows' reserve (`mayKeepWhole`) | up to `inUseLimit` | goes on in a window |
/// | a body in a window, or a small body | all | up to `windowLimit` | waits; no new fetch begins |
/// | an entry, without its body | all | until it fits; see `keepReserve` | is not stored |
///
/// So slow readers end neither fetches nor hits, and the last part of the bar is safe from them. An eviction passes
/// over at most `S3FIFO.mostLaps` entries of each shard that are being sent.
public final class ResponseStore: Sendable {
    struct LockedShard: ~Copyable, Sendable {
        let shard: Guarded<Shard>
        /// Bytes that the shard holds. `fullerShard` reads this without the shard's lock.
        let bytes = Atomic<Int>(0)

        init(settings: StorageSettings, budget: MemoryBudget) {
            shard = Guarded(Shard(settings: settings, budget: budget))
        }
    }

    let shards: FixedArray<LockedShard>
    /// The tags of the stored responses. A look-up finds no response that a purge of one of its tags has removed.
    public let tags: TagTable
    private let shift: UInt64
    private let budget: MemoryBudget
    private let settings: StorageSettings
    // Computed from the settings once: each response that begins reads them.
    private let windowLimit: Int
    private let windowReserve: Int
    /// The number of the next shard to evict from, modulo the number of shards.
    private let turn = Atomic<Int>(0)
    private let stored = Atomic<Int>(0)
    /// Resting bytes at the last store that left the windows' reserve untouched.
    private let mostResting: Atomic<Int>

    /// - Parameter budget: shared with the bodies that still arrive.
    public init(settings: StorageSettings, budget: MemoryBudget, tags: TagTable = TagTable()) {
        self.tags = tags
        precondition(settings.shards > 0 && settings.shards.nonzeroBitCount == 1, "shards must be a power of two")
        self.settings = settings
        windowLimit = settings.windowLimit
        windowReserve = settings.windowReserve
        self.budget = budget
        mostResting = Atomic(budget.limit)
        // The hash is shifted by `shift` and then by 1: a single shard needs a shift by 64, which no shift instruction
        // does.
        shift = 63 - UInt64(settings.shards.trailingZeroBitCount)
        shards = FixedArray(count: settings.shards) { _ in LockedShard(settings: settings, budget: budget) }
    }

    // MARK: - Looking up

    /// All that is known under `key`. Allocates nothing.
    public func resource(_ key: CacheKey) -> CachedResource? {
        guard let found = shards[shardIndex(of: key.hash)].shard.withLock({ $0.table.resource(key) }) else {
            return nil
        }
        return found.isChecked(by: tags) ? found : settled(found, under: key)
    }

    /// The whole response under `key` that answers a request with `fields`, as `CachedResource.response(matching:)`
    /// finds it. Allocates nothing. Retains only the response, since the reference count of a popular object moves from
    /// core to core.
    /// - Parameter hash: of `key`, under the process's secret key (`KeyedHash`).
    public func response(hash: UInt64, key: Span<UInt8>, matching fields: FieldView) -> StoredResponse? {
        switch shards[shardIndex(of: hash)].shard.withLock({ $0.table.form(hash: hash, key: key) }) {
        case .only(let response): if response.isChecked(at: tags.generation) { return response }
        case .snapshot(let snapshot):
            if snapshot.isChecked(by: tags) { return snapshot.response(matching: fields) }
        case nil: return nil
        }
        return resource(CacheKey(hash: hash, bytes: ByteSlice(copying: key)))?.response(matching: fields)
    }

    /// The resource under `key`, in which `found` was not checked since the last purge of a tag.
    @inline(never) // Once for each response after a purge.
    private func settled(_ found: CachedResource, under key: CacheKey) -> CachedResource? {
        settle(found, under: key) ? found : resource(key)
    }

    /// Lets the purges of tags have their effects on the responses of `found`, which is stored under `key`.
    /// - Returns: false if `found` is no longer what is stored.
    @discardableResult
    func settle(_ found: CachedResource, under key: CacheKey) -> Bool {
        if found.isUntouched(by: tags) { return true }
        change(key) { $0.settle(key) }
        return false
    }

    // MARK: - Storing

    // A fetch may be marked as invalidated at any moment (RFC 9111 §4.4), on any thread, before the responses of its
    // key are dropped. The mark is read under the lock of the key's shard, under which they are dropped: so a response
    // that was requested before an invalidation is either dropped or not stored. The caller's closure may take a lock
    // of its own.

    /// Stores `response`, replacing a stored response of the same variant, and evicts entries until it fits. Removes
    /// the markers of the key that the response contradicts.
    /// - Parameters:
    ///   - requestTime: when the response's request was sent. A more recent response that a later, faster fetch stored
    ///     since then stays (RFC 9111 §4).
    ///   - popularity: how many clients beyond the first waited for the response; counts like hits.
    ///   - wasInvalidated: whether the fetch is marked as invalidated; called under the lock.
    public func store(
        _ response: StoredResponse, under key: CacheKey, requestTime: Moment, popularity: Int = 0,
        unless wasInvalidated: () -> Bool
    ) -> StoreOutcome {
        guard response.bodyLength != nil else { return .incomplete }
        let response = response.packed(under: key)
        guard response.objectSize <= settings.objectLimit else { return .tooLarge }
        response.setFrequency(min(StoredResponse.highestFrequency, UInt8(clamping: popularity)))
        return change(key, reserving: cost(of: response)) { shard in
            guard !wasInvalidated(), response.tags?.areRemoved != true,
                !shard.holdsNewer(than: response, since: requestTime, under: key)
            else { return .outdated }
            shard.store(response, under: key)
            return .stored
        } ?? .noRoom
    }

    /// Adds the parts in `response` to the stored parts of its variant, or replaces these if they belong to another
    /// representation. Parts that make up the whole become an ordinary response.
    /// - Parameters:
    ///   - range: the bytes that the new message brought. This range stays when other parts must go to keep the parts
    ///     below `StorageSettings.objectLimit`.
    ///   - requestTime: when the response's request was sent.
    ///   - wasInvalidated: whether the fetch is marked as invalidated; called under the lock.
    public func storeParts(
        _ response: StoredResponse, bringing range: Range<Int>, under key: CacheKey, requestTime: Moment,
        unless wasInvalidated: () -> Bool
    ) -> StoreOutcome {
        guard let parts = response.parts, !range.isEmpty else { return .incomplete }
        guard response.objectSize <= settings.objectLimit else { return .tooLarge }
        // The result of joining the parts with the stored parts is known only under the lock: reserve for the most.
        return change(key, reserving: cost(of: response) + parts.mostJoinedCharge) { shard in
            !wasInvalidated() && response.tags?.areRemoved != true
                && shard.storeParts(response, parts, bringing: range, since: requestTime, under: key)
                ? .stored : .outdated
        } ?? .noRoom
    }

    /// Drops this response, or these parts, if still stored, because the origin contradicted them. Other responses
    /// under the key stay.
    public func drop(_ former: StoredResponse, of key: CacheKey) { change(key) { $0.drop(former, of: key) } }

    /// Replaces `former` with `response`, which shares its body, after a validation (RFC 9111 §4.3.4). Only if `former`
    /// is still stored, and no purge of its tags has removed it: then it was not invalidated since the origin was asked
    /// about it.
    /// - Parameter isConfirmed: whether the origin confirmed the response to GET for several requests, so that markers
    ///   of the key may be contradicted. False if the origin's response only updated the stored fields.
    public func freshen(
        _ former: StoredResponse, by response: StoredResponse, under key: CacheKey, isConfirmed: Bool
    ) -> StoreOutcome {
        // A 304 may add fields with which the response would not have been stored. Parts together may be larger than
        // one object: an update that adds nothing leaves them.
        guard response.objectSize <= max(settings.objectLimit, former.objectSize) else {
            drop(former, of: key)
            return .tooLarge
        }
        let response = response.packed(under: key)
        return change(key, reserving: cost(of: response)) { shard in
            former.tags?.areRemoved != true
                && shard.freshen(former, with: response, under: key, isConfirmed: isConfirmed) ? .stored : .gone
        } ?? .noRoom
    }

    // MARK: - Notes

    /// Sets the marker of `reason` for `key`, which holds up to `until` (`KeyMarkers`). Does nothing if there is no
    /// room for the marker.
    /// - Parameter until: in nanoseconds of the monotonic clock.
    public func mark(_ key: CacheKey, _ reason: NotSharedReason, until: Int64, at now: Moment) {
        _ = change(key, reserving: KeyMarkers.mostCharge) { shard in
            shard.mark(key) { $0.set(reason, until: until, at: now) }
        }
    }

    /// Forgets the markers of `key` that `response`, which is for several requests, contradicts. Any thread.
    /// - Parameter keepsWhole: whether the response brings the whole representation, and it is kept.
    public func forgetMarkers(of key: CacheKey, after response: ResponseFacts, keepsWhole: Bool) {
        // Most keys have no markers, and finding that out costs less than a change.
        guard let markers = resource(key)?.markers, !markers.stand(after: response, keepsWhole: keepsWhole) else {
            return
        }
        change(key) { shard in
            shard.mark(key) { current in
                // Markers set since then are not forgotten.
                if current == markers { current.forget(after: response, keepsWhole: keepsWhole) }
            }
        }
    }

    /// Remembers the `Vary` rule of the responses to `key`, so that requests can be told apart while the first response
    /// is still on its way. Does nothing if there is no room for the rule.
    public func learn(_ rule: VaryRule, for key: CacheKey) {
        _ = change(key, reserving: CachedResource.charge(of: rule)) { $0.learn(rule, for: key) }
    }

    // MARK: - Removing

    /// Drops all responses of `key`. A fetch that has begun must have been marked before.
    /// - Parameter keepsNotes: whether the key's `Vary` rules and markers stay, as after an unsafe request (RFC 9111
    ///   §4.4).
    /// - Returns: the number of responses dropped.
    @discardableResult
    public func remove(_ key: CacheKey, keepsNotes: Bool = false) -> Int {
        change(key) { $0.remove(key, keepsNotes: keepsNotes) }
    }

    /// Makes all fresh responses of `key` stale.
    /// - Returns: the number of responses of `key`.
    public func soften(_ key: CacheKey, by softening: Softening) -> Int {
        change(key) { $0.soften(key, by: softening) }
    }

    // MARK: - Memory

    /// Makes `bytes` free in the budget for a body that still arrives, by evicting the least valuable entries.
    ///
    /// Bodies in use displace resting bytes only up to `StorageSettings.windowLimit`.
    /// - Returns: `false` if so many bytes cannot be made free: the caller waits or gives up.
    public func makeRoom(bytes: Int) -> Bool {
        evict { budget.limit - budget.used < bytes && budget.inUse + bytes <= windowLimit }
        return budget.limit - budget.used >= bytes
    }

    /// Whether a body that is kept whole may take `bytes` more and still leave the windows their reserve.
    public func mayKeepWhole(_ bytes: Int) -> Bool { room(without: bytes) >= windowReserve }

    /// Bytes that bodies in windows can still take.
    public var room: Int { room(without: 0) }

    /// - Parameter bytes: bytes to count as taken by another body.
    private func room(without bytes: Int) -> Int {
        let (used, resting) = (budget.used, budget.resting)
        let free = budget.limit - used
        let inUse = used - resting + bytes
        let evictable = min(resting - max(0, bytes - free), windowLimit - inUse)
        return max(0, free - bytes) + max(0, evictable)
    }

    /// Bytes of all entries, bodies included.
    public var bytes: Int { stored.load(ordering: .relaxed) }

    /// The counts of entries and evictions. Takes each shard's lock in turn: for the admin pages, not for requests. Any
    /// thread.
    public var numbers: StorageNumbers {
        var numbers = StorageNumbers()
        for index in 0..<shards.count { shards[index].shard.withLock { numbers.add($0) } }
        return numbers
    }

    /// Evicts while `isNeeded` returns true and an entry can be evicted.
    private func evict(while isNeeded: () -> Bool) {
        var (empty, index) = (0, 0)
        while empty < shards.count, budget.resting > 0, isNeeded() {
            // The bytes that make a shard the fuller one may be in use. After a failure, the other shards are asked in
            // turn.
            index = empty == 0 ? fullerShard() : (index + 1) & (shards.count - 1)
            let evicted = change(shards[index], reserved: 0) { $0.evict() }
            empty = evicted ? 0 : empty + 1
        }
    }

    /// While the windows' reserve is in use, evicts until the resting bytes exceed `mostResting` by no more than a
    /// quarter of the reserve.
    private func keepReserve() {
        let resting = budget.resting
        guard room < windowReserve else {
            if mostResting.load(ordering: .relaxed) != resting { mostResting.store(resting, ordering: .relaxed) }
            return
        }
        let most = mostResting.load(ordering: .relaxed) + windowReserve / 4
        evict { budget.resting > most && room < windowReserve }
    }

    /// The fuller of the next two shards. This keeps all shards about equally full, even if each holds few responses.
    private func fullerShard() -> Int {
        let first = turn.wrappingAdd(1, ordering: .relaxed).oldValue
        let (one, other) = (first & (shards.count - 1), (first &+ 1) & (shards.count - 1))
        return shards[one].bytes.load(ordering: .relaxed) >= shards[other].bytes.load(ordering: .relaxed) ? one : other
    }

    // MARK: - Under a shard's lock

    private func shardIndex(of hash: UInt64) -> Int { Int(truncatingIfNeeded: (hash >> shift) >> 1) }

    /// The most bytes that an entry for `response` takes beside its body.
    private func cost(of response: StoredResponse) -> Int {
        response.overhead + CachedResource.charge(of: response.varyRule) + Charge.variant
            + (response.tags?.mostCharge ?? 0)
    }

    /// Makes a change that may need memory, for a new resource and `cost` bytes more. `nil`, with nothing changed, if
    /// there is no memory.
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

    /// Changes a shard under its lock. Afterwards frees the dropped memory and releases the excess of the reservation.
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
        // Bytes beyond `reserved` were not reserved, and would exceed the ceiling.
        assert(charge <= reserved, "a change took \(charge) bytes of \(reserved) reserved")
        budget.release(reserved - charge)
        return result
    }
}
