/// Whether a response that another request fetched may answer this request, judging by its head alone.
public enum RequestScope: Sendable, Equatable {
    /// A stored or arriving response may answer the request, as far as that response allows.
    case shareable
    /// The request is forwarded to the origin by itself, because of its method or to bypass the store.
    case pass(ForwardReason)

    /// - Parameters:
    ///   - hasContent: whether its framing announces content: in GET or HEAD it has no meaning (RFC 9110 §9.3.1), but
    ///     an origin may give it one.
    ///   - hasPassCookie: whether it has a cookie for which the operator lets requests bypass the cache.
    ///   - isBound: as in `RequestFacts`.
    @inlinable
    public init(_ fields: FieldView, method: Method, hasContent: Bool, hasPassCookie: Bool, isBound: Bool = false) {
        // Only the origin evaluates the first two (RFC 9111 §4.3.2). With `Upgrade`, which is not in `present` if it is
        // ignored, the response may start a tunnel.
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
