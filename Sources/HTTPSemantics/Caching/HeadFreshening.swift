import Bytes

/// What the answer to `HEAD` says of a stored response to GET (RFC 9111 §4.3.5).
public enum HeadFreshening: Sendable, Equatable {
    /// The same still: update its fields (`Freshening`).
    case update
    /// Something else now: it is stale.
    case expire
    /// A response to HEAD that tells nothing of it.
    case none

    /// For each stored response to GET that could have been chosen for the request.
    /// - Parameter storedLength: bytes of the stored body.
    public init(
        head: FieldView, headFacts: ResponseFacts, stored: FieldView, storedFacts: ResponseFacts, storedLength: Int
    ) {
        guard headFacts.status == .ok, storedFacts.status == .ok else { self = .none; return }
        self = Self.isSame(head, headFacts, stored, storedFacts, storedLength) ? .update : .expire
    }

    /// Every validator received agrees, and the length where it was.
    private static func isSame(
        _ head: FieldView, _ headFacts: ResponseFacts, _ stored: FieldView, _ storedFacts: ResponseFacts, _ length: Int
    ) -> Bool {
        if let tag = head.entityTag {
            guard let own = stored.entityTag, tag.isWeak == own.isWeak, tag.isWeaklyEqual(to: own) else { return false }
        }
        if headFacts.contains(.hasLastModified) {
            guard storedFacts.contains(.hasLastModified), headFacts.lastModified == storedFacts.lastModified else { return false }
        }
        guard let line = head.firstIndex(of: .contentLength) else { return true }
        return RangeRequest.position(head.value(at: line)) == length
    }
}
