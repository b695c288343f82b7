/// For which requests a response is: what its `Vary` nominates, and what the request that caused it said there (RFC 9111
/// §4.1). Free to go to any thread.
public struct Variant: Hashable, Sendable {
    /// What `Vary` nominates.
    public let rule: VaryRule
    /// What the request said there.
    public let key: VariantKey

    /// The variant of a response to the request with `fields`, where `Vary` is `rule`.
    public init(for fields: FieldView, under rule: VaryRule) {
        self.rule = rule
        key = VariantKey(fields, under: rule)
    }
}
