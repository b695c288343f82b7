import HTTPSemantics
import Storage

/// The same response, except for what a validation or another request changes.
extension StoredResponse {
    /// The same body under another head.
    func with(head: HeadBlock, facts: ResponseFacts, groups: CacheGroups?) -> StoredResponse {
        StoredResponse(
            head: head, facts: facts, body: bodyToFollow(), parts: parts, varyRule: varyRule, variantKey: variantKey,
            groups: groups)
    }

    /// The same, to be validated before it is used again.
    var invalidated: StoredResponse {
        var facts = facts
        facts.invalidate()
        return with(head: head, facts: facts, groups: groups)
    }

    /// The same as the variant for a request with `fields`.
    func answering(_ fields: FieldView) -> StoredResponse {
        answers(fields) ? self : varying(by: varyRule, for: fields)
    }

    /// The same as the variant for a request with `fields` where `Vary` is `rule`.
    func varying(by rule: VaryRule, for fields: FieldView) -> StoredResponse {
        StoredResponse(
            head: head, facts: facts, body: bodyToFollow(), parts: parts, varyRule: rule,
            variantKey: VariantKey(fields, under: rule), groups: groups)
    }

    func withHead(_ head: HeadBlock) -> StoredResponse { with(head: head, facts: facts, groups: groups) }
}
