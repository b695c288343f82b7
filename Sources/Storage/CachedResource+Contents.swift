import HTTPSemantics

extension CachedResource {
    /// What a resource holds, while it is changed.
    struct Contents {
        /// Vary rules kept for one resource. A look-up goes through them.
        private static let mostRules = 8

        /// The whole variants, the most recent first (RFC 9111 §4).
        var variants: [Variant] = []
        /// The variants of which there are parts, the latest stored first.
        var partials: [Variant] = []
        /// The `Vary` rules seen, the latest first.
        var knownVary: [VaryRule] = []
        var markers = KeyMarkers()

        var hasResponses: Bool { !variants.isEmpty || !partials.isEmpty }
        /// Whether there is nothing to keep.
        var isEmpty: Bool { !hasResponses && knownVary.isEmpty && markers.isEmpty }

        /// The packed response, if that is all there is.
        var only: StoredResponse? {
            guard variants.count == 1, partials.isEmpty, knownVary.isEmpty, markers.isEmpty,
                variants[0].response.canStandAlone
            else { return nil }
            return variants[0].response
        }

        /// Takes out the whole variant, or the parts, that have the same variant as `response`.
        mutating func take(
            sameAs response: StoredResponse, from list: WritableKeyPath<Contents, [Variant]>
        ) -> Variant? {
            let hash = response.variantHash
            let index = self[keyPath: list].firstIndex { $0.isSame(as: response, hash: hash) }
            return index.map { self[keyPath: list].remove(at: $0) }
        }

        /// Inserts `variant` before all that are not more recent. What is put back as old as it was stays behind newer
        /// ones.
        mutating func insert(_ variant: Variant) {
            let facts = variant.response.facts
            let index = variants.firstIndex { !$0.response.facts.isMoreRecent(than: facts) }
            variants.insert(variant, at: index ?? variants.count)
        }

        /// Takes out the variant, whole or in parts, that stands at `slot`.
        mutating func remove(_ slot: EvictionSlot) {
            variants.removeAll { $0.slot == slot }
            partials.removeAll { $0.slot == slot }
        }

        /// Notes that a response varies by `rule`.
        /// - Returns: what is taken out, since it varies by a rule that is no longer remembered. No origin has so many.
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
