package import HTTPSemantics

/// Copies of a stored response, changed by a validation or for another request.
extension StoredResponse {
    /// This body under another head.
    package func with(head: HeadBlock, facts: ResponseFacts, tags: ResponseTags?) -> StoredResponse {
        StoredResponse(head: head, facts: facts, body: bodyToFollow(), parts: parts, variant: variant, tags: tags)
    }

    /// This response with other facts.
    package func with(facts: ResponseFacts) -> StoredResponse { StoredResponse(self, facts: facts) }

    /// This response for other requests.
    package func with(_ variant: Variant) -> StoredResponse {
        StoredResponse(head: head, facts: facts, body: bodyToFollow(), parts: parts, variant: variant, tags: tags)
    }

    /// This response under another head, with the same facts.
    package func withHead(_ head: HeadBlock) -> StoredResponse { with(head: head, facts: facts, tags: tags) }
}
