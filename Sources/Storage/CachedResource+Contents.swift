import HTTPSemantics

extension CachedResource {
    /// What a resource holds, while it is changed.
    struct Contents {
        /// Vary rules kept for one resource.
        private static let mostRules = 8

        /// The latest `Date` first.
        var variants: [Variant] = []
        /// The latest stored first.
        var partials: [Variant] = []
        /// The latest first.
        var knownVary: [VaryRule] = []
        var marker: UnshareableMarker?

        var hasResponses: Bool { !variants.isEmpty || !partials.isEmpty }
        /// Nothing to keep.
        var isEmpty: Bool { !hasResponses && knownVary.isEmpty && marker == nil }

        /// The packed response that is all of it.
        var only: StoredResponse? {
            guard variants.count == 1, partials.isEmpty, knownVary.isEmpty, marker == nil,
                variants[0].response.canStandAlone
            else { return nil }
            return variants[0].response
        }

        /// Before all with the same or an older `Date`.
        mutating func insert(_ variant: Variant) {
            let date = variant.response.facts.date
            variants.insert(variant, at: variants.firstIndex { $0.response.facts.date <= date } ?? variants.count)
        }

        /// Takes out the variant, whole or in parts, that stands at `slot`.
        mutating func remove(_ slot: EvictionSlot) {
            variants.removeAll { $0.slot == slot }
            partials.removeAll { $0.slot == slot }
        }

        /// `response` proved that several may have it. That only those who are alike may is not contradicted by one of
        /// that kind.
        mutating func forgetMarker(after response: StoredResponse) {
            if marker?.reason != .unlike || !response.facts.contains(.separatesRequests) { marker = nil }
        }

        mutating func learn(_ rule: VaryRule) {
            if rule.isEmpty || knownVary.first == rule { return }
            knownVary = [rule] + knownVary.filter { $0 != rule }.prefix(Self.mostRules - 1)
        }
    }
}
