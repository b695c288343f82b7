import HTTPSemantics

/// The optional properties of a response: its variant, its cache groups, its parts. Most responses have none of them.
final class Extras: Sendable {
    /// `nil` if the response does not vary.
    let variant: Variant?
    let groups: CacheGroups?
    let parts: StoredParts?

    /// The extras of a response; `nil` if it has none.
    static func of(_ variant: Variant?, _ groups: CacheGroups?, parts: StoredParts?) -> Extras? {
        let varies = !(variant?.rule.isEmpty ?? true)
        if !varies, groups == nil, parts == nil { return nil }
        return Extras(variant: varies ? variant : nil, groups: groups, parts: parts)
    }

    private init(variant: Variant?, groups: CacheGroups?, parts: StoredParts?) {
        self.variant = variant
        self.groups = groups
        self.parts = parts
    }

    /// Bytes of memory, without the bytes that `parts` account for themselves.
    var charge: Int {
        Charge.extras + (groups.map { Charge.groups + $0.names.count * Charge.nominee } ?? 0)
    }
}
