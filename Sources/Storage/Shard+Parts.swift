internal import Bytes
internal import HTTPSemantics

/// Parts of representations (RFC 9111 §3.3, §3.4): beside the variants, never among them.
extension Shard {
    /// Adds what `response` has to the parts of its variant; a response of another representation takes their place.
    /// - Parameter range: what it brings anew.
    /// - Returns: false where the variant is stored whole, or the parts that are stored are newer.
    mutating func storeParts(
        _ response: StoredResponse, _ new: StoredParts, bringing range: Range<Int>, since: Int64, limit: Int, budget: MemoryBudget,
        hash: UInt64, key: Span<UInt8>, dropped: inout Dropped
    ) -> Bool {
        let old = table.resource(hash: hash, key: key)
        guard old?.variants.contains(where: { $0.response.isSameVariant(as: response) }) != true else { return false }
        var partials = old?.partials ?? []
        let former = partials.firstIndex { $0.response.isSameVariant(as: response) }.map { partials.remove(at: $0) }
        var (parts, head) = (new, response)
        if let stored = former?.response, let others = stored.parts {
            let isNewer = stored.facts.isMoreRecent(than: response.facts)
            if stored.holdsParts(ofSameAs: response, new.content) {
                parts = new.runs.reduce(others) { $0.adding($1, length: new.length, budget: budget) }
                if isNewer { head = stored }
            } else if isNewer, stored.facts.received.monotonic > since {
                return false
            }
        }
        let merged = response.with(parts.joined(keeping: range, limit: limit, budget: budget), head: head, budget: budget)
        merged.setFrequency(max(response.frequency, former?.response.frequency ?? 0))
        guard merged.parts != nil else {
            // The last gap is closed.
            if let former { discard(former, &dropped) }
            put(old?.variants ?? [], partials, knownVary: old?.knownVary ?? [], marker: old?.marker, over: old, hash: hash, key: key, &dropped)
            store(merged.packed(under: key), hash: hash, key: key, dropped: &dropped)
            return true
        }
        if let former {
            partials.insert(replace(former, with: merged, &dropped), at: 0)
        } else {
            let slot = queues.insert(.response(merged), hash: hash, size: merged.size)
            account(merged)
            partials.insert(CachedResource.Variant(response: merged, slot: slot), at: 0)
        }
        if partials.count > Self.mostPartials { discard(partials.removeLast(), &dropped) }
        // That the whole is too large is still so.
        let marker = old?.marker.flatMap { $0.reason == .range ? $0 : nil }
        put(
            old?.variants ?? [], partials, knownVary: Self.adding(merged.varyRule, to: old?.knownVary ?? []), marker: marker,
            over: old, hash: hash, key: key, &dropped)
        return true
    }
}
