import HTTPSemantics
import Storage

/// What a stored response is good for where only parts of it are there.
extension StoredResponse {
    /// Whether its parts are all that `request` wants of it.
    func hasAll(that request: ClientRequest) -> Bool { use(for: request) == .answers }

    /// What its parts are good for.
    func use(for request: ClientRequest) -> PartUse {
        guard let parts else { return .answers }
        let (requestFields, storedHead) = (request.fields, head)
        // For 304 no byte is needed (RFC 9111 §4.3.2).
        guard ClientConditions.evaluate(requestFields.view, stored: storedHead.view, facts: facts) == .send else {
            return .answers
        }
        return PartUse(
            requestFields.view, of: parts.content, stored: storedHead.view, facts: facts,
            maxRanges: request.route.maxRanges)
    }
}
