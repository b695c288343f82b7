import HTTPSemantics

/// Updates a stored response after its validation (RFC 9111 §4.3).
extension Shard {
    /// - Parameter isConfirmed: see `ResponseStore.freshen`.
    /// - Returns: whether `former`, whole or in parts, was still stored.
    mutating func freshen(
        _ former: StoredResponse, with response: StoredResponse, under key: CacheKey, isConfirmed: Bool
    ) -> Bool {
        guard let old = table.resource(key) else { return false }
        var new = old.contents
        if former.parts == nil {
            guard let (variant, _) = freshen(former, with: response, under: key, in: &new.variants) else {
                return false
            }
            new.insert(variant)
            if isConfirmed { new.markers.forget(after: response.facts, keepsWhole: true) }
        } else {
            guard let (variant, index) = freshen(former, with: response, under: key, in: &new.partials) else {
                return false
            }
            new.partials.insert(variant, at: min(index, new.partials.count))
        }
        for lost in new.learn(response.varyRule) { discard(lost) }
        put(new, over: old, under: key)
        return true
    }

    /// Takes `former` out of `list`, and moves its place in the eviction queues to `response`.
    private mutating func freshen(
        _ former: StoredResponse, with response: StoredResponse, under key: CacheKey,
        in list: inout [CachedResource.Variant]
    ) -> (CachedResource.Variant, index: Int)? {
        guard let index = list.firstIndex(where: { $0.response === former }) else { return nil }
        let place = list.remove(at: index)
        // If the response's `Vary` has changed, the response may now be the same variant as another in the list.
        let hash = response.variantHash
        if let twin = list.firstIndex(where: { $0.isSame(as: response, hash: hash) }) {
            discard(list.remove(at: twin))
        }
        response.setFrequency(former.frequency)
        return (replace(place, with: response, under: key), index)
    }

    /// Drops `former`, whole or in parts, if it is still stored.
    mutating func drop(_ former: StoredResponse, of key: CacheKey) {
        guard let old = table.resource(key), let variant = old.allVariants.first(where: { $0.response === former })
        else { return }
        discard(variant)
        var new = old.contents
        new.remove(variant.slot)
        put(new, over: old, under: key)
    }
}
