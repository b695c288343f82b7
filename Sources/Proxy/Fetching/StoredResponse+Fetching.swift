import HTTPSemantics
import Storage

/// A stored response, except for what a validation or another request changes.
extension StoredResponse {
    /// This body under another head.
    func with(head: HeadBlock, facts: ResponseFacts, groups: CacheGroups?) -> StoredResponse {
        StoredResponse(
            head: head, facts: facts, body: bodyToFollow(), parts: parts, variant: variant, groups: groups)
    }

    /// This response, to be validated before it is used again.
    var invalidated: StoredResponse {
        var facts = facts
        facts.invalidate()
        return with(head: head, facts: facts, groups: groups)
    }

    /// This response for other requests.
    func with(_ variant: Variant) -> StoredResponse {
        StoredResponse(
            head: head, facts: facts, body: bodyToFollow(), parts: parts, variant: variant, groups: groups)
    }

    func withHead(_ head: HeadBlock) -> StoredResponse { with(head: head, facts: facts, groups: groups) }
}

/// What a stored response is good for where only parts of it are there.
extension StoredResponse {
    /// Whether its parts are all that `request` wants of it.
    func hasEverything(wantedBy request: ClientRequest) -> Bool { use(for: request) == .answers }

    /// What its parts are good for.
    func use(for request: ClientRequest) -> PartUse {
        guard let parts else { return .answers }
        return request.use(of: parts.content, head, facts)
    }
}

extension ClientRequest {
    /// What parts of a representation are good for to it.
    /// - Parameters:
    ///   - content: the parts.
    ///   - head: of the representation, with `facts`.
    func use(of content: PartialContent, _ head: HeadBlock, _ facts: ResponseFacts) -> PartUse {
        let fields = fields
        // For 304 no byte is needed (RFC 9111 §4.3.2).
        guard ClientConditions.evaluate(fields.view, stored: head.view, facts: facts) == .send else { return .answers }
        return PartUse(fields.view, of: content, stored: head.view, facts: facts, maxRanges: route.maxRanges)
    }
}
