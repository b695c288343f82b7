import HTTPSemantics

/// The positions of the variants of a resource that has many, so that finding a variant takes no longer than among a
/// few. Belongs to the snapshot that it was made for; immutable.
///
/// An open-addressing table of positions with linear probing, at most half full. Under one rule at most one variant
/// answers a request, so a look-up is one probe for each rule, of which there are `CachedResource.Contents.mostRules`
/// at most.
struct VariantIndex: Sendable {
    /// Up to this number, variants are compared one by one, without an index.
    private static let few = 4

    private let rules: [VaryRule]
    /// Each variant's position in the list plus 1; 0 in an empty place.
    private let places: [UInt16]
    /// The position of the variant that does not vary.
    private let unvarying: Int?

    /// `nil` if there are few variants.
    /// - Parameters:
    ///   - variants: the whole variants; fewer than 65,536.
    ///   - rules: all rules by which the variants vary.
    init?(_ variants: [CachedResource.Variant], under rules: [VaryRule]) {
        guard variants.count > Self.few else { return nil }
        self.rules = rules
        var size = 16
        while size < variants.count * 2 { size *= 2 }
        var places = [UInt16](repeating: 0, count: size)
        var unvarying: Int?
        for (position, variant) in variants.enumerated() {
            if variant.response.precedence == .unvarying {
                unvarying = position
                continue
            }
            var place = Int(variant.hash) & (size - 1)
            while places[place] != 0 { place = (place + 1) & (size - 1) }
            places[place] = UInt16(position + 1)
        }
        self.places = places
        self.unvarying = unvarying
    }

    /// The variant that answers a request with `fields`, as `CachedResource.response(matching:)` chooses it. Allocates
    /// nothing.
    /// - Parameter variants: the variants that the index was made for.
    func response(matching fields: FieldView, among variants: [CachedResource.Variant]) -> StoredResponse? {
        var best = unvarying
        for rule in rules {
            guard let position = position(of: fields, under: rule, among: variants) else { continue }
            if let former = best {
                let (one, other) = (variants[position].response.precedence, variants[former].response.precedence)
                // The list is ordered by `Date`, the latest first.
                if one < other || (one == other && position > former) { continue }
            }
            best = position
        }
        return best.map { variants[$0].response }
    }

    private func position(of fields: FieldView, under rule: VaryRule, among variants: [CachedResource.Variant]) -> Int?
    {
        let hash = UInt32(truncatingIfNeeded: VariantKey.hash(of: fields, under: rule))
        var place = Int(hash) & (places.count - 1)
        while places[place] != 0 {
            let position = Int(places[place]) - 1
            if variants[position].hash == hash {
                let response = variants[position].response
                if response.varyRule == rule, response.variantKey.matches(fields, under: rule) { return position }
            }
            place = (place + 1) & (places.count - 1)
        }
        return nil
    }
}
