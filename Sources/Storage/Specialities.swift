internal import Bytes
internal import HTTPSemantics

/// What a response varies by and belongs to, and the parts it stands for. Most responses have none of it.
final class Specialities: Sendable {
    let varyRule: VaryRule
    let variantKey: VariantKey
    let groups: [String]
    let parts: StoredParts?

    init(varyRule: VaryRule, variantKey: VariantKey, groups: [String], parts: StoredParts?) {
        self.varyRule = varyRule
        self.variantKey = variantKey
        self.groups = groups
        self.parts = parts
    }

    /// Bytes of memory, those that `parts` account for themselves left out.
    var charge: Int { Charge.specialities + groups.count * Charge.nominee }
}
