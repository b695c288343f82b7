import HTTPSemantics

/// Parts of representations (RFC 9111 §3.3, §3.4). They are kept in a list of their own, apart from the whole variants.
extension Shard {
    /// Adds the parts in `response` to the stored parts of the same variant, or replaces these if they belong to
    /// another representation.
    /// - Parameter range: the bytes that the new message brought.
    /// - Returns: false if the variant is stored whole, or if the stored parts belong to another representation that is
    ///   newer.
    mutating func storeParts(
        _ response: StoredResponse, _ new: StoredParts, bringing range: Range<Int>, since: Moment, under key: CacheKey
    ) -> Bool {
        // Parts that a purge has removed are not completed.
        settle(key)
        let old = table.resource(key)
        var contents = old?.contents ?? CachedResource.Contents()
        let hash = response.variantHash
        guard !contents.variants.contains(where: { $0.isSame(as: response, hash: hash) }) else { return false }
        let former = contents.take(sameAs: response, from: \.partials)
        var (parts, head) = (new, response)
        if let stored = former?.response, let others = stored.parts {
            let isNewer = stored.facts.isMoreRecent(than: response.facts)
            if stored.holdsParts(ofSameAs: response, new.content) {
                parts = new.runs.reduce(others) { $0.adding($1, length: new.length, budget: budget) }
                if isNewer { head = stored }
            } else if isNewer, stored.facts.responseTime.monotonic > since.monotonic {
                return false
            }
        }
        let merged = response.with(
            parts.joined(keeping: range, limit: settings.objectLimit, budget: budget), head: head, budget: budget)
        merged.setFrequency(max(response.frequency, former?.response.frequency ?? 0))
        guard merged.parts != nil else {
            // The parts are now the whole representation.
            if let former { discard(former) }
            put(contents, over: old, under: key)
            store(merged.packed(under: key), under: key)
            return true
        }
        let variant = former.map { replace($0, with: merged, under: key) } ?? add(merged, under: key)
        contents.partials.insert(variant, at: 0)
        for lost in contents.learn(merged.varyRule) { discard(lost) }
        keepMostUsed(of: &contents.partials, and: variant.slot)
        contents.markers.forget(after: merged.facts, keepsWhole: false)
        put(contents, over: old, under: key)
        return true
    }
}
