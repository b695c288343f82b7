internal import Bytes
internal import HTTPSemantics

/// What a response varies by and belongs to, and the parts it stands for. Most responses have none of it.
final class Specialities: Sendable {
    let varyRule: VaryRule
    let variantKey: VariantKey
    let groups: [String]
    let parts: StoredParts?

    /// `nil` where there is nothing special.
    static func of(_ varyRule: VaryRule?, _ variantKey: VariantKey?, _ groups: [String], parts: StoredParts?) -> Specialities? {
        if varyRule?.isEmpty ?? true, groups.isEmpty, parts == nil { return nil }
        return Specialities(varyRule: varyRule ?? .none, variantKey: variantKey ?? .none, groups: groups, parts: parts)
    }

    private init(varyRule: VaryRule, variantKey: VariantKey, groups: [String], parts: StoredParts?) {
        self.varyRule = varyRule
        self.variantKey = variantKey
        self.groups = groups
        self.parts = parts
    }

    /// Bytes of memory, those that `parts` account for themselves left out.
    var charge: Int { Charge.specialities + groups.count * Charge.nominee }
}
