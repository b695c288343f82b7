internal import Bytes
internal import HTTPSemantics

/// What a validation makes of a stored response (RFC 9111 §4.3).
extension Shard {
    /// Whether `former` was still there.
    mutating func freshen(
        _ former: StoredResponse, with response: StoredResponse, hash: UInt64, key: Span<UInt8>, dropped: inout Dropped
    ) -> Bool {
        guard let old = table.resource(hash: hash, key: key) else { return false }
        if former.parts != nil { return freshenParts(former, with: response, in: old, hash: hash, key: key, dropped: &dropped) }
        var variants = old.variants
        guard let index = variants.firstIndex(where: { $0.response === former }) else { return false }
        let place = variants.remove(at: index)
        // With another `Vary` than before it may have become the same variant as its neighbour.
        if let twin = variants.firstIndex(where: { $0.response.isSameVariant(as: response) }) {
            discard(variants.remove(at: twin), &dropped)
        }
        response.setFrequency(former.frequency)
        insert(replace(place, with: response, &dropped), into: &variants)
        let rules = Self.adding(response.varyRule, to: old.knownVary)
        put(variants, old.partials, knownVary: rules, marker: nil, over: old, hash: hash, key: key, &dropped)
        return true
    }

    private mutating func freshenParts(
        _ former: StoredResponse, with response: StoredResponse, in old: CachedResource, hash: UInt64, key: Span<UInt8>,
        dropped: inout Dropped
    ) -> Bool {
        var partials = old.partials
        guard let index = partials.firstIndex(where: { $0.response === former }) else { return false }
        let place = partials.remove(at: index)
        // As in `freshen`.
        if let twin = partials.firstIndex(where: { $0.response.isSameVariant(as: response) }) {
            discard(partials.remove(at: twin), &dropped)
        }
        response.setFrequency(former.frequency)
        partials.insert(replace(place, with: response, &dropped), at: min(index, partials.count))
        let rules = Self.adding(response.varyRule, to: old.knownVary)
        put(old.variants, partials, knownVary: rules, marker: old.marker, over: old, hash: hash, key: key, &dropped)
        return true
    }

    /// Drops `former`, whole or parts, if it is still there.
    mutating func drop(_ former: StoredResponse, hash: UInt64, key: Span<UInt8>, dropped: inout Dropped) {
        guard let old = table.resource(hash: hash, key: key),
              let tenant = old.tenants.first(where: { $0.response === former }) else { return }
        discard(tenant, &dropped)
        put(
            old.variants.filter { $0.slot != tenant.slot }, old.partials.filter { $0.slot != tenant.slot }, knownVary: old.knownVary,
            marker: old.marker, over: old, hash: hash, key: key, &dropped)
    }
}
