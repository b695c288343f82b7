import HTTPSemantics

extension CachedResource {
    /// The mutable contents of a resource, from which the next snapshot is made.
    struct Contents {
        /// The most `Vary` rules kept for one resource. A look-up goes through all of them.
        private static let mostRules = 8

        /// The whole variants, the most recent first (RFC 9111 §4).
        var variants: [Variant] = []
        /// The variants of which only parts are stored, the latest stored first.
        var partials: [Variant] = []
        /// The `Vary` rules of the responses seen, the latest first.
        var knownVary: [VaryRule] = []
        var markers = KeyMarkers()

        var hasResponses: Bool { !variants.isEmpty || !partials.isEmpty }
        /// Whether there is neither a response nor a note to keep.
        var isEmpty: Bool { !hasResponses && knownVary.isEmpty && markers.isEmpty }

        /// The packed response, if the resource consists of nothing else.
        var only: StoredResponse? {
            guard variants.count == 1, partials.isEmpty, knownVary.isEmpty, markers.isEmpty,
                variants[0].response.isWholeResource
            else { return nil }
            return variants[0].response
        }

        /// Removes from `list`, and returns, the entry that is the same variant as `response`.
        mutating func take(
            sameAs response: StoredResponse, from list: WritableKeyPath<Contents, [Variant]>
        ) -> Variant? {
            let hash = response.variantHash
            let index = self[keyPath: list].firstIndex { $0.isSame(as: response, hash: hash) }
            return index.map { self[keyPath: list].remove(at: $0) }
        }

        /// Inserts `variant` before all variants that are not more recent. A variant that is put back with its former
        /// `Date` stays behind more recent ones.
        mutating func insert(_ variant: Variant) {
            let facts = variant.response.facts
            let index = variants.firstIndex { !$0.response.facts.isMoreRecent(than: facts) }
            variants.insert(variant, at: index ?? variants.count)
        }

        /// Removes the variant at `slot`, whole or in parts.
        mutating func remove(_ slot: EvictionSlot) {
            variants.removeAll { $0.slot == slot }
            partials.removeAll { $0.slot == slot }
        }

        /// Notes that a response varies by `rule`.
        /// - Returns: the removed variants: their rule is no longer remembered. No real origin has more than
        ///   `mostRules` rules.
        mutating func learn(_ rule: VaryRule) -> [Variant] {
            if rule.isEmpty || knownVary.first == rule { return [] }
            let rules = [rule] + knownVary.filter { $0 != rule }
            knownVary = Array(rules.prefix(Self.mostRules))
            guard let forgotten = rules.dropFirst(Self.mostRules).first else { return [] }
            let lost = (variants + partials).filter { $0.response.varyRule == forgotten }
            variants.removeAll { $0.response.varyRule == forgotten }
            partials.removeAll { $0.response.varyRule == forgotten }
            return lost
        }
    }
}
