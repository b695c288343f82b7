import HTTPSemantics

/// A request that looks for its variants among those of one resource.
///
/// The first few it compares as it stands, byte by byte, which allocates nothing. Where there are more, or where their
/// keys are long, it writes its own down, once for all of one rule: anybody can have many variants stored whose values
/// are long and equal except for their ends.
struct VariantSearch {
    /// How many variants are compared as the request stands.
    private static let few = 4
    /// The longest key compared so, in bytes; the first may be longer.
    private static let short = 256

    private var compared = 0
    private(set) var written: (key: VariantKey, rule: VaryRule)?

    /// Whether the request with `fields`, the same each time, gets `response` (RFC 9111 §4.1).
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
