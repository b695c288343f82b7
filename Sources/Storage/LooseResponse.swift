internal import Bytes
internal import HTTPSemantics

/// What a response varies by and belongs to. Most responses have none of it.
final class Nominations: Sendable {
    let varyRule: VaryRule
    let variantKey: VariantKey
    let groups: [String]

    init(varyRule: VaryRule, variantKey: VariantKey, groups: [String]) {
        self.varyRule = varyRule
        self.variantKey = variantKey
        self.groups = groups
    }

    /// Bytes of memory.
    var charge: Int { Charge.nominations + groups.count * Charge.nominee }
}

/// The inside of a response that has a head and a body of its own.
final class LooseResponse: Sendable {
    let head: HeadBlock
    let body: GrowingBody
    let parts: StoredParts?

    init(head: HeadBlock, body: GrowingBody, parts: StoredParts?) {
        self.head = head
        self.body = body
        self.parts = parts
    }
}
