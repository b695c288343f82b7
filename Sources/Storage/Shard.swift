import Bytes
import HTTPSemantics

/// One part of the store: index, eviction queues, counters. Protected by its shard's mutex.
///
/// The shard holds a resource as long as it has a response or a note (markers, known `Vary`). The notes have an entry
/// of their own in the eviction queues only while the resource has no response. Eviction of the last response removes
/// the notes, too.
///
/// Every change moves dropped responses and resources to `dropped`, so that bodies are freed after the lock is opened.
struct Shard {
    let budget: MemoryBudget
    let settings: StorageSettings
    var table = ResourceTable()
    var queues: EvictionQueues
    /// Bytes reserved for this shard, without the bodies.
    private(set) var charged = 0
    /// Bytes of the bodies, which reserve their own memory.
    private var bodies = 0
    private(set) var responses = 0
    /// Resources with markers.
    private(set) var marked = 0
    private(set) var evictions = EvictionCounts()
    /// Dropped responses and resources, until the lock is opened.
    var dropped = Dropped()

    init(settings: StorageSettings, budget: MemoryBudget) {
        self.settings = settings
        self.budget = budget
        queues = EvictionQueues(smallPercent: settings.smallQueuePercent)
    }

    /// Bytes stored, bodies included.
    var bytes: Int { charged + bodies }
    var resources: Int { table.count }

    /// Whether a stored response of the same variant arrived after `since` and is more recent than `response`.
    func holdsNewer(than response: StoredResponse, since: Moment, under key: CacheKey) -> Bool {
        guard let resource = table.resource(key) else { return false }
        return resource.variants.contains { variant in
            let held = variant.response
            return held.facts.responseTime.monotonic > since.monotonic && held.isSameVariant(as: response)
                && held.facts.isMoreRecent(than: response.facts) && held.tags?.areRemoved != true
        }
    }

    // MARK: - Changes

    mutating func store(_ response: StoredResponse, under key: CacheKey) {
        let old = table.resource(key)
        if old == nil, response.isWholeResource { return storeAlone(response, under: key) }
        var new = old?.contents ?? CachedResource.Contents()
        let variant: CachedResource.Variant
        if let former = new.take(sameAs: response, from: \.variants) {
            response.setFrequency(max(response.frequency, former.response.frequency))
            variant = replace(former, with: response, under: key)
        } else {
            variant = add(response, under: key)
        }
        new.insert(variant)
        // A variant that is stored whole needs no parts.
        if let parts = new.take(sameAs: response, from: \.partials) { discard(parts) }
        for lost in new.learn(response.varyRule) { discard(lost) }
        keepMostUsed(of: &new.variants, and: variant.slot)
        new.markers.forget(after: response.facts, keepsWhole: true)
        put(new, over: old, under: key)
    }

    /// Stores a response under a key without an entry, so that the response is the whole resource. This is the case for
    /// most stored responses. Makes no lists.
    private mutating func storeAlone(_ response: StoredResponse, under key: CacheKey) {
        response.stand(at: add(response, under: key).slot)
        let new = CachedResource(hash: key.hash, .only(response))
        table.insert(new)
        charged += new.charge
    }

    /// Applies `change` to the key's markers.
    mutating func mark(_ key: CacheKey, _ change: (inout KeyMarkers) -> Void) {
        let old = table.resource(key)
        var new = old?.contents ?? CachedResource.Contents()
        let former = new.markers
        change(&new.markers)
        if new.markers != former { put(new, over: old, under: key) }
    }

    mutating func learn(_ rule: VaryRule, for key: CacheKey) {
        let old = table.resource(key)
        guard !rule.isEmpty, old?.knownVary.first != rule else { return }
        var new = old?.contents ?? CachedResource.Contents()
        for lost in new.learn(rule) { discard(lost) }
        put(new, over: old, under: key)
    }

    /// Drops all responses of `key`.
    /// - Parameter keepsNotes: whether the key's `Vary` rules and markers stay.
    /// - Returns: the number of dropped responses.
    mutating func remove(_ key: CacheKey, keepsNotes: Bool) -> Int {
        guard let old = table.resource(key) else { return 0 }
        let variants = old.allVariants
        for variant in variants { discard(variant) }
        put(
            keepsNotes ? CachedResource.Contents(knownVary: old.knownVary, markers: old.markers) : .init(), over: old,
            under: key)
        giveBackLists()
        return variants.count
    }

    /// If a purge has emptied the shard, gives back the memory of its lists.
    mutating func giveBackLists() {
        guard table.count == 0, table.isLarge else { return }
        table.removeAll()
        queues.removeAll()
    }

    /// Evicts the least valuable entry that is not being sent. `false` if there is none, or if none was found soon
    /// enough.
    mutating func evict() -> Bool {
        guard let eviction = queues.evict() else { return false }
        evictions.count(eviction.queue)
        let (slot, hash) = (eviction.slot, eviction.hash)
        switch eviction.candidate {
        case .notes:
            if let resource = table.resource(hash: hash, where: { $0.notesSlot == slot }) { forget(resource) }
        case .response(let response):
            writeOff(response)
            guard let old = table.resource(hash: hash, where: { $0.stands(at: slot) }) else { break }
            var new = old.contents
            new.remove(slot)
            // A resource without responses is forgotten, with its notes.
            if new.hasResponses {
                put(new, over: old, under: CacheKey(hash: hash, bytes: old.key))
            } else {
                forget(old)
            }
        }
        return true
    }

    // MARK: - Pieces of a change

    /// Replaces `old` with `contents`, or removes `old` if `contents` are empty.
    mutating func put(_ contents: CachedResource.Contents, over old: CachedResource?, under key: CacheKey) {
        if let slot = old?.notesSlot { queues.remove(slot) }
        guard !contents.isEmpty else {
            if let old { forget(old) }
            return
        }
        let notesSlot =
            contents.hasResponses ? nil : queues.insert(.notes, hash: key.hash, size: Charge.resource + key.bytes.count)
        let new = CachedResource(contents, under: key, notesSlot: notesSlot)
        if let old {
            replace(old, with: new)
        } else {
            table.insert(new)
            charged += new.charge
            if !new.markers.isEmpty { marked += 1 }
        }
    }

    private mutating func replace(_ old: CachedResource, with new: CachedResource) {
        table.replace(old, with: new)
        charged += new.charge - old.charge
        if !old.markers.isEmpty { marked -= 1 }
        if !new.markers.isEmpty { marked += 1 }
        dropped.resources.append(old)
    }

    private mutating func forget(_ resource: CachedResource) {
        table.remove(resource)
        charged -= resource.charge
        if !resource.markers.isEmpty { marked -= 1 }
        dropped.resources.append(resource)
    }

    /// Evicts the least used of a resource's variants if there are too many, but not the variant at `kept`, which was
    /// just stored. As in the eviction queues, a used variant goes only when all variants were used (`S3FIFO`): then
    /// the counter of each is lowered by the uses of the evicted one, so that a variant that was popular once goes in
    /// time.
    mutating func keepMostUsed(of variants: inout [CachedResource.Variant], and kept: EvictionSlot) {
        while variants.count > settings.maxVariants {
            var least: (index: Int, value: Value)?
            for (index, variant) in variants.enumerated() where variant.slot != kept {
                let value = Value(of: variant, in: queues.queue(of: variant.slot))
                if least.map({ value < $0.value }) ?? true { least = (index, value) }
            }
            guard let least else { return }
            let uses = least.value.uses
            let variant = variants.remove(at: least.index)
            if uses > 0 {
                for other in variants {
                    // The counter is read once: a client that is served at this moment may count a use.
                    let frequency = other.response.frequency
                    other.response.setFrequency(frequency - min(uses, frequency))
                }
            }
            queues.giveUp(variant.slot)
            evictions.count(least.value.isProven ? .main : .small)
            writeOff(variant.response)
        }
    }

    /// The value of a variant compared with others of its resource.
    private struct Value: Comparable {
        let uses: UInt8
        /// Whether the variant has come out of probation.
        let isProven: Bool
        /// When the response arrived, in nanoseconds of the monotonic clock.
        let since: Int64

        init(of variant: CachedResource.Variant, in queue: EvictionQueue) {
            uses = variant.response.frequency
            isProven = queue == .main
            since = variant.response.facts.responseTime.monotonic
        }

        static func < (left: Value, right: Value) -> Bool {
            if left.uses != right.uses { return left.uses < right.uses }
            if left.isProven != right.isProven { return right.isProven }
            return left.since < right.since
        }
    }

    mutating func discard(_ variant: CachedResource.Variant) {
        queues.remove(variant.slot)
        writeOff(variant.response)
    }

    mutating func add(_ response: StoredResponse, under key: CacheKey) -> CachedResource.Variant {
        account(response, under: key)
        return CachedResource.Variant(
            response: response, slot: queues.insert(.response(response), hash: key.hash, size: response.size))
    }

    mutating func replace(
        _ former: CachedResource.Variant, with response: StoredResponse, under key: CacheKey
    ) -> CachedResource.Variant {
        queues.replace(former.slot, with: .response(response), size: response.size)
        account(response, under: key)
        writeOff(former.response)
        return CachedResource.Variant(response: response, slot: former.slot)
    }

    private mutating func account(_ response: StoredResponse, under key: CacheKey) {
        charged += response.overhead + (response.tags?.beginStoring() ?? 0)
        bodies += response.retained
        responses += 1
        response.beginStoring(under: key)
    }

    private mutating func writeOff(_ response: StoredResponse) {
        charged -= response.overhead + (response.tags?.endStoring() ?? 0)
        bodies -= response.retained
        responses -= 1
        response.endStoring()
        dropped.responses.append(response)
    }
}

/// The responses and resources that changes dropped, to be freed once the lock is open again.
struct Dropped {
    var responses: [StoredResponse] = []
    var resources: [CachedResource] = []
}

/// Evictions since the start, by queue.
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
