import HTTPSemantics

/// What a response varies by and belongs to, and the parts it stands for. Most responses have none of it.
final class Extras: Sendable {
    let varyRule: VaryRule
    let variantKey: VariantKey
    let groups: CacheGroups?
    let parts: StoredParts?

    /// The extras of a response; `nil` where there are none.
    static func of(_ varyRule: VaryRule?, _ variantKey: VariantKey?, _ groups: CacheGroups?, parts: StoredParts?)
        -> Extras?
    {
        if varyRule?.isEmpty ?? true, groups == nil, parts == nil { return nil }
        return Extras(varyRule: varyRule ?? .none, variantKey: variantKey ?? .none, groups: groups, parts: parts)
    }

    private init(varyRule: VaryRule, variantKey: VariantKey, groups: CacheGroups?, parts: StoredParts?) {
        self.varyRule = varyRule
        self.variantKey = variantKey
        self.groups = groups
        self.parts = parts
    }

    /// Bytes of memory, those that `parts` account for themselves left out.
    var charge: Int {
        Charge.extras + (groups.map { Charge.groups + $0.names.count * Charge.nominee } ?? 0)
    }
}
