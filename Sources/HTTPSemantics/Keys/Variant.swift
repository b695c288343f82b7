/// The requests that a response may answer: the fields that its `Vary` nominates, with their values in the original
/// request (RFC 9111 §4.1). Usable on any thread.
public struct Variant: Hashable, Sendable {
    /// The nominated fields.
    public let rule: VaryRule
    /// The values of the request in these fields.
    public let key: VariantKey

    /// The variant of a response to the request with `fields`, where `Vary` is `rule`.
    public init(for fields: FieldView, under rule: VaryRule) {
        self.rule = rule
        key = VariantKey(fields, under: rule)
    }
}
