internal import Bytes
internal import HTTPSemantics

/// One part of the store: index, eviction queues, counters. Protected by its shard's mutex.
///
/// A resource is here as long as it has a response or a note (a marker, known `Vary`). Its notes stand in the eviction
/// queues only while it has no response; with its last response evicted they go too.
///
/// Every change hands what it dropped to `dropped`, so that bodies are freed behind the lock.
struct Shard {
    /// Variants of one resource; the one with the oldest `Date` goes first. Bounds the work of choosing one.
    static let mostVariants = 64
    /// Variants of one resource of which parts are kept; the one stored longest ago goes first. Large files seldom vary.
    static let mostPartials = 8
    /// Vary rules kept for one resource.
    static let mostRules = 8

    var table = ResourceTable()
    var queues: EvictionQueues
    private(set) var invalidations = InvalidationLog()
    /// Reserved for this shard, bodies apart.
    private(set) var charged = 0
    /// Bytes of the bodies, which reserve for themselves.
    private var bodies = 0
    private(set) var responses = 0
    private(set) var markers = 0
    private(set) var evictions = EvictionCounts()

    init(smallPercent: Int) { queues = EvictionQueues(smallPercent: smallPercent) }

    /// Bytes stored, bodies included.
    var bytes: Int { charged + bodies }
    var smallBytes: Int { queues.smallBytes }
    var resources: Int { table.count }
    var ghostMemory: Int { queues.ghostMemory }

    func resource(hash: UInt64, key: Span<UInt8>) -> CachedResource? { table.resource(hash: hash, key: key) }
    func form(hash: UInt64, key: Span<UInt8>) -> CachedResource.Form? { table.form(hash: hash, key: key) }

    /// Whether the same variant arrived after `since` and is more recent.
    func holdsNewer(than response: StoredResponse, since: Int64, hash: UInt64, key: Span<UInt8>) -> Bool {
        guard let resource = table.resource(hash: hash, key: key) else { return false }
        return resource.variants.contains { variant in
            let held = variant.response
            return held.isSameVariant(as: response) && held.facts.received.monotonic > since && held.facts.isMoreRecent(than: response.facts)
        }
    }

    func keys(ofURL url: ByteSlice) -> [(hash: UInt64, key: ByteSlice)] {
        var found: [(hash: UInt64, key: ByteSlice)] = []
        table.forEach { resource in
            let key = resource.key
            if SearchKey.isKey(key.span, ofURL: url.span) { found.append((resource.hash, key)) }
        }
        return found
    }

    // MARK: - Changes

    mutating func store(_ response: StoredResponse, hash: UInt64, key: Span<UInt8>, dropped: inout Dropped) {
        let old = table.resource(hash: hash, key: key)
        if old == nil, response.canStandAlone { return storeAlone(response, hash: hash) }
        var variants = old?.variants ?? []
        if let index = variants.firstIndex(where: { $0.response.isSameVariant(as: response) }) {
            let former = variants.remove(at: index)
            response.setFrequency(max(response.frequency, former.response.frequency))
            insert(replace(former, with: response, &dropped), into: &variants)
        } else {
            let slot = queues.insert(.response(response), hash: hash, size: response.size)
            account(response)
            insert(CachedResource.Variant(response: response, slot: slot), into: &variants)
        }
        if variants.count > Self.mostVariants { discard(variants.removeLast(), &dropped) }
        // What is there whole needs no parts.
        let partials = (old?.partials ?? []).filter { partial in
            guard partial.response.isSameVariant(as: response) else { return true }
            discard(partial, &dropped)
            return false
        }
        put(
            variants, partials, knownVary: Self.adding(response.varyRule, to: old?.knownVary ?? []), marker: nil,
            over: old, hash: hash, key: key, &dropped
        )
    }

    /// What nothing was known of, and nothing more is to be said of than this response: most of what is stored. No list of it is made.
    private mutating func storeAlone(_ response: StoredResponse, hash: UInt64) {
        let slot = queues.insert(.response(response), hash: hash, size: response.size)
        account(response)
        response.stand(at: slot)
        let new = CachedResource(hash: hash, .only(response))
        table.insert(new)
        charged += new.charge
    }

    mutating func mark(_ marker: UnshareableMarker?, hash: UInt64, key: Span<UInt8>, dropped: inout Dropped) {
        let old = table.resource(hash: hash, key: key)
        guard old?.marker != marker else { return }
        put(
            old?.variants ?? [], old?.partials ?? [], knownVary: old?.knownVary ?? [], marker: marker, over: old, hash: hash, key: key,
            &dropped)
    }

    mutating func learn(_ rule: VaryRule, hash: UInt64, key: Span<UInt8>, dropped: inout Dropped) {
        let old = table.resource(hash: hash, key: key)
        guard !rule.isEmpty, old?.knownVary.first != rule else { return }
        let rules = Self.adding(rule, to: old?.knownVary ?? [])
        put(old?.variants ?? [], old?.partials ?? [], knownVary: rules, marker: old?.marker, over: old, hash: hash, key: key, &dropped)
    }

    /// Drops the responses; how it varies and that it may not be shared is still known.
    mutating func invalidate(hash: UInt64, key: Span<UInt8>, dropped: inout Dropped) -> Int {
        invalidations.append(hash)
        guard let old = table.resource(hash: hash, key: key) else { return 0 }
        for variant in old.tenants { discard(variant, &dropped) }
        put([], [], knownVary: old.knownVary, marker: old.marker, over: old, hash: hash, key: key, &dropped)
        return old.tenants.count
    }

    mutating func remove(hash: UInt64, key: Span<UInt8>, dropped: inout Dropped) -> Int {
        invalidations.append(hash)
        guard let old = table.resource(hash: hash, key: key) else { return 0 }
        for variant in old.tenants { discard(variant, &dropped) }
        put([], [], knownVary: [], marker: nil, over: old, hash: hash, key: key, &dropped)
        return old.tenants.count
    }

    mutating func removeAll(dropped: inout Dropped) -> Int {
        dropped.table = table
        let removed = responses
        table.removeAll()
        queues.removeAll()
        (charged, bodies, responses, markers) = (0, 0, 0, 0)
        return removed
    }

    /// Gives up what is missed least. `false` when there is nothing.
    mutating func evict(dropped: inout Dropped) -> Bool {
        guard let eviction = queues.evict() else { return false }
        evictions.count(eviction.queue)
        let (slot, hash) = (eviction.slot, eviction.hash)
        switch eviction.candidate {
        case .notes:
            if let resource = table.resource(hash: hash, where: { $0.notesSlot == slot }) { forget(resource, &dropped) }
        case .response(let response):
            writeOff(response, &dropped)
            guard let old = table.resource(hash: hash, where: { $0.tenants.contains { $0.slot == slot } }) else { break }
            let variants = old.variants.filter { $0.slot != slot }
            let partials = old.partials.filter { $0.slot != slot }
            if variants.isEmpty, partials.isEmpty {
                forget(old, &dropped)
            } else {
                let new = CachedResource(
                    hash: hash, key: old.key, variants: variants, partials: partials, knownVary: old.knownVary, marker: old.marker
                )
                swap(old, for: new, &dropped)
            }
        }
        return true
    }

    // MARK: - Pieces of a change

    /// Puts the snapshot with these contents in the place of `old`, or nothing when they say nothing.
    mutating func put(
        _ variants: [CachedResource.Variant], _ partials: [CachedResource.Variant], knownVary: [VaryRule], marker: UnshareableMarker?,
        over old: CachedResource?, hash: UInt64, key: Span<UInt8>, _ dropped: inout Dropped
    ) {
        if let slot = old?.notesSlot { queues.remove(slot) }
        guard !variants.isEmpty || !partials.isEmpty || !knownVary.isEmpty || marker != nil else {
            if let old { forget(old, &dropped) }
            return
        }
        var notesSlot: EvictionSlot?
        if variants.isEmpty, partials.isEmpty {
            let size = Charge.resource + key.count
            notesSlot = queues.insert(.notes, hash: hash, size: size)
        }
        let new = CachedResource(hash: hash, only: variants, partials, knownVary: knownVary, marker: marker) ?? CachedResource(
            hash: hash, key: old?.ownKey ?? ByteSlice(copying: key), variants: variants, partials: partials,
            knownVary: knownVary, marker: marker, notesSlot: notesSlot
        )
        if let old {
            swap(old, for: new, &dropped)
        } else {
            table.insert(new)
            charged += new.charge
            if marker != nil { markers += 1 }
        }
    }

    private mutating func swap(_ old: CachedResource, for new: CachedResource, _ dropped: inout Dropped) {
        table.replace(old, with: new)
        charged += new.charge - old.charge
        if old.marker != nil { markers -= 1 }
        if new.marker != nil { markers += 1 }
        dropped.resources.append(old)
    }

    private mutating func forget(_ resource: CachedResource, _ dropped: inout Dropped) {
        table.remove(resource)
        charged -= resource.charge
        if resource.marker != nil { markers -= 1 }
        dropped.resources.append(resource)
    }

    mutating func discard(_ variant: CachedResource.Variant, _ dropped: inout Dropped) {
        queues.remove(variant.slot)
        writeOff(variant.response, &dropped)
    }

    mutating func replace(
        _ former: CachedResource.Variant, with response: StoredResponse, _ dropped: inout Dropped
    ) -> CachedResource.Variant {
        queues.replace(former.slot, with: .response(response), size: response.size)
        account(response)
        writeOff(former.response, &dropped)
        return CachedResource.Variant(response: response, slot: former.slot)
    }

    mutating func account(_ response: StoredResponse) {
        charged += response.overhead
        bodies += response.retained
        responses += 1
    }

    private mutating func writeOff(_ response: StoredResponse, _ dropped: inout Dropped) {
        charged -= response.overhead
        bodies -= response.retained
        responses -= 1
        dropped.responses.append(response)
    }

    /// Before all with the same or an older `Date`.
    func insert(_ variant: CachedResource.Variant, into variants: inout [CachedResource.Variant]) {
        let date = variant.response.facts.date
        let index = variants.firstIndex { $0.response.facts.date <= date } ?? variants.count
        variants.insert(variant, at: index)
    }

    static func adding(_ rule: VaryRule, to rules: [VaryRule]) -> [VaryRule] {
        if rule.isEmpty || rules.first == rule { return rules }
        return [rule] + rules.filter { $0 != rule }.prefix(mostRules - 1)
    }
}

/// What a change let go of, to be freed when the lock is open again.
struct Dropped {
    var responses: [StoredResponse] = []
    var resources: [CachedResource] = []
    var table = ResourceTable()
}

/// Evictions since the start, by the queue they came from.
struct EvictionCounts {
    var small = 0
    var main = 0

    mutating func count(_ queue: EvictionQueue) {
        switch queue {
        case .small: small += 1
        case .main: main += 1
        }
    }
}
