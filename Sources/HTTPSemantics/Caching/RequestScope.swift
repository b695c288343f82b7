/// Whether a request may be answered by what another request fetched, as its head alone says.
public enum RequestScope: Sendable, Equatable {
    /// The request may be answered by a stored or arriving response, as far as that response allows.
    case shareable
    /// The request is passed to the origin by itself, for its method or to bypass the store.
    case pass(ForwardReason)

    /// - Parameters:
    ///   - hasContent: whether its framing announces content: on GET or HEAD it has no meaning (RFC 9110 §9.3.1), but an
    ///     origin may give it one.
    ///   - hasPassCookie: whether it has a cookie with which the operator has requests go past the cache.
    ///   - isBound: as in `RequestFacts`.
    @inlinable
    public init(_ fields: FieldView, method: Method, hasContent: Bool, hasPassCookie: Bool, isBound: Bool = false) {
        // Only the origin evaluates the first two (RFC 9111 §4.3.2). With the last, which is not present where it is
        // ignored, the response may turn into a tunnel.
        let alone = FieldSet(.ifMatch).union(FieldSet(.ifUnmodifiedSince)).union(FieldSet(.upgrade))
        self =
            if method != .get, method != .head {
                .pass(.method)
            } else {
                hasContent || hasPassCookie || isBound || !fields.present.isDisjoint(with: alone)
                    ? .pass(.bypass) : .shareable
            }
    }
}
