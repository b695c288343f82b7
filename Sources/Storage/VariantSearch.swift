import HTTPSemantics

/// Finds the variants that answer one request among the variants of one resource.
///
/// The first few variants are compared with the request's fields byte by byte, which allocates nothing. If there are
/// more variants, or if their keys are long, the request's own variant key is written down, once for successive
/// variants with one rule: any client can have many variants stored whose values are long and equal except for their
/// ends.
struct VariantSearch {
    /// How many variants are compared with the fields directly.
    private static let few = 4
    /// The longest variant key, in bytes, that is compared with the fields directly. The first variant's key may be
    /// longer.
    private static let short = 256

    private var compared = 0
    private(set) var written: (key: VariantKey, rule: VaryRule)?

    /// Whether the request with `fields` gets `response` (RFC 9111 §4.1). `fields` must be the same in each call.
    mutating func finds(_ response: StoredResponse, for fields: FieldView) -> Bool {
        let rule = response.varyRule
        if rule.isEmpty { return true }
        let key = response.variantKey
        compared += 1
        if compared == 1 || (compared <= Self.few && key.count <= Self.short) {
            return key.matches(fields, under: rule)
        }
        if let written, written.rule == rule { return key == written.key }
        let own = VariantKey(fields, under: rule)
        written = (own, rule)
        return key == own
    }
}
