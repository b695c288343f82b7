import HTTPSemantics

/// What a response varies by and belongs to, and the parts it stands for. Most responses have none of it.
final class Extras: Sendable {
    /// `nil` where nothing varies.
    let variant: Variant?
    let groups: CacheGroups?
    let parts: StoredParts?

    /// The extras of a response; `nil` where there are none.
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

    /// Bytes of memory, those that `parts` account for themselves left out.
    var charge: Int {
        Charge.extras + (groups.map { Charge.groups + $0.names.count * Charge.nominee } ?? 0)
    }
}
