import Bytes

/// The effect of a response to HEAD on a stored response to GET (RFC 9111 §4.3.5).
public enum HeadFreshening: Sendable, Equatable {
    /// The stored response is still current: update its fields (`Freshening`).
    case update
    /// The representation has changed: the stored response is stale.
    case expire
    /// The response to HEAD does not affect the stored response.
    case none

    /// Decides for one stored response to GET; call it for each that could have been selected for the request.
    /// - Parameter storedLength: bytes of the stored body.
    public init(
        head: FieldView, headFacts: ResponseFacts, stored: FieldView, storedFacts: ResponseFacts, storedLength: Int
    ) {
        guard headFacts.status == .ok, storedFacts.status == .ok else { self = .none; return }
        self = Self.isSame(head, headFacts, stored, storedLength) ? .update : .expire
    }

    /// Whether the validators are equal, with at least one received, and the length if one was received.
    ///
    /// §4.3.5 leaves open the case without a received validator: equal lengths, or none, are no proof. And a tag that
    /// only the stored response has was in the request: an equal tag would have resulted in a 304.
    private static func isSame(
        _ head: FieldView, _ headFacts: ResponseFacts, _ stored: FieldView, _ length: Int
    ) -> Bool {
        guard headFacts.hasValidator, head.hasSame(.etag, as: stored) else { return false }
        if head.contains(.lastModified), !head.hasSame(.lastModified, as: stored) { return false }
        guard let stated = head.firstValue(of: .contentLength) else { return true }
        return RangeRequest.position(stated) == length
    }
}

extension FieldView {
    /// Whether the first line of `validator` has the same value in both, byte for byte, or is absent in both. Values
    /// that are no tags or no dates are compared the same way: if they differ, the representations differ.
    func hasSame(_ validator: KnownField, as other: borrowing FieldView) -> Bool {
        guard let line = firstIndex(of: validator), let otherLine = other.firstIndex(of: validator) else {
            return contains(validator) == other.contains(validator)
        }
        return value(at: line).isEqual(to: other.value(at: otherLine))
    }
}
