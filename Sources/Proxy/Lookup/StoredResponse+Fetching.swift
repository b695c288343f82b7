import HTTPSemantics
import Routing
import Storage

/// The use of a stored response of which only parts are stored.
extension StoredResponse {
    /// Whether the response has all that `request` wants of it.
    func hasEverything(wantedBy request: ClientRequest) -> Bool { use(for: request) == .answers }

    /// The use of its parts for `request`.
    func use(for request: ClientRequest) -> PartUse {
        guard let parts else { return .answers }
        return request.use(of: parts.content, head, facts)
    }
}

extension ClientRequest {
    /// The use of parts of a representation for the request.
    /// - Parameters:
    ///   - content: the parts.
    ///   - head: the head of the representation, which has `facts`.
    func use(of content: PartialContent, _ head: HeadBlock, _ facts: ResponseFacts) -> PartUse {
        let fields = fields
        // A 304 needs no content (RFC 9111 §4.3.2).
        guard ClientConditions.evaluate(fields.view, stored: head.view, facts: facts) == .send else { return .answers }
        return PartUse(fields.view, of: content, stored: head.view, facts: facts, maxRanges: route.maxRanges)
    }
}
