import HTTPSemantics
import Storage
import Upstream

/// Whether the response is stored, and how much of its body is held.
extension Fetch {
    /// How much is held of a body that arrives.
    enum Keeping {
        /// All of it: it will be stored.
        case stored
        /// All of it, for those who come late.
        case forSharing
        /// What its readers still need.
        case window

        var isWhole: Bool {
            switch self {
            case .stored, .forSharing: true
            case .window: false
            }
        }
    }

    /// Kept whole, for storing or for who comes late, is only what may be as large.
    /// - Parameter length: in bytes, as far as it is announced.
    func chooseKeeping(_ notStored: NotStoredReason?, _ sharing: Sharing, length: Int) -> Keeping {
        if notStored == nil { return .stored }
        return sharing.isForSeveral && length <= worker.storage.objectLimit ? .forSharing : .window
    }

    /// - Parameter length: what would be stored, in bytes, as far as it is announced.
    func reasonNotToStore(
        _ head: borrowing ReceivedHead, _ facts: ResponseFacts, _ policy: CachingPolicy, length: Int
    ) -> NotStoredReason? {
        guard request.route.isCached else { return .cachingOff }
        // Content on GET is nothing that a key could hold; that of a POST has had its effect.
        if request.hasContent, method != .post { return .requestContent }
        // What went through with one client's conditions and range may be an answer to those, as 412 and 416 are.
        if plan.isPass, request.isConditional, facts.status != .ok { return .requestCondition }
        // These answer one client's condition or range, whoever was asked without it (RFC 9110 §15.5.13, §15.5.17).
        if facts.status == .preconditionFailed || facts.status == .rangeNotSatisfiable { return .requestCondition }
        switch facts.storability(
            method: method, request: request.directives, hasAuthorization: request.hasAuthorization,
            answersTarget: method == .post && PostAnswer.isForTarget(head.fields, target: request.targetURI) && !request.namesMethod,
            policy: policy) {
        case .store: return length <= worker.storage.objectLimit ? nil : .tooLarge
        // Nobody asked for a part: nothing is known of what else there is.
        case .storePart: return .partial
        case .doNotStore(let reason): return reason
        }
    }
}
