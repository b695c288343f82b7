/// Why a request is neither answered from the store nor shares a fetch.
public enum NotCoalescedReason: Sendable, CaseIterable {
    case method
    /// A body on GET or HEAD has no meaning (RFC 9110 §9.3.1), but an origin may give it one.
    case content
    /// `If-Match` or `If-Unmodified-Since`: only the origin evaluates them (RFC 9111 §4.3.2).
    case precondition
    /// `Upgrade`: the response may turn into a tunnel.
    case upgrade
}

/// Whether a request may be answered by what another request fetched, as its head alone says.
public enum RequestScope: Sendable, Equatable {
    /// By what is stored or arriving, as far as that response allows.
    case shareable
    /// It is passed to the origin by itself.
    case pass(NotCoalescedReason)

    /// - Parameters:
    ///   - hasContent: whether its framing announces content, even none.
    @inlinable
    public init(_ fields: FieldView, method: Method, hasContent: Bool) {
        let alone = FieldSet(.ifMatch).union(FieldSet(.ifUnmodifiedSince)).union(FieldSet(.upgrade))
        if method == .get || method == .head, !hasContent, fields.present.isDisjoint(with: alone) {
            self = .shareable
        } else {
            self = .pass(Self.reason(fields, method: method, hasContent: hasContent))
        }
    }

    @usableFromInline
    static func reason(_ fields: FieldView, method: Method, hasContent: Bool) -> NotCoalescedReason {
        guard method == .get || method == .head else { return .method }
        if hasContent { return .content }
        return fields.contains(.upgrade) ? .upgrade : .precondition
    }
}
