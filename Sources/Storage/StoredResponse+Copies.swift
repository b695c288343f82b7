package import HTTPSemantics

/// Copies of a stored response, changed by a validation or for another request.
extension StoredResponse {
    /// This body under another head.
    package func with(head: HeadBlock, facts: ResponseFacts, groups: CacheGroups?) -> StoredResponse {
        StoredResponse(
            head: head, facts: facts, body: bodyToFollow(), parts: parts, variant: variant, groups: groups)
    }

    /// This response, to be validated before it is used again.
    package var invalidated: StoredResponse {
        var facts = facts
        facts.invalidate()
        return with(head: head, facts: facts, groups: groups)
    }

    /// This response for other requests.
    package func with(_ variant: Variant) -> StoredResponse {
        StoredResponse(
            head: head, facts: facts, body: bodyToFollow(), parts: parts, variant: variant, groups: groups)
    }

    /// This response under another head, with the same facts.
    package func withHead(_ head: HeadBlock) -> StoredResponse { with(head: head, facts: facts, groups: groups) }
}
