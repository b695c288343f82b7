/// The properties of a request that the cache rules use to decide on its response; the counterpart of `ResponseFacts`.
/// The initializer has no defaults: a forgotten value could share a response that is for one client.
public struct RequestFacts: Sendable, Equatable {
    /// The method sent to the origin: GET, or HEAD if it is shared with other HEAD requests.
    public let method: Method
    /// The directives that the policy does not ignore; `no-store` is never ignored (`RequestDirectivePolicy`).
    public let directives: RequestDirectives
    /// Whether the request carried `Authorization`.
    public let hasAuthorization: Bool
    /// Whether the request bypassed the cache, by a cookie that the operator named (`CookiePattern`).
    public let hasPassCookie: Bool

    /// Whether the request was sent on an origin connection that is reserved for its client connection. The origin may
    /// have authenticated that connection, so that no field of the request names the user
    /// (`FieldView.hasConnectionCredentials`).
    public let isBound: Bool

    /// A GET without directives, credentials or pass cookies.
    public static let plainGet = RequestFacts(
        method: .get, directives: .none, hasAuthorization: false, hasPassCookie: false, isBound: false)

    @inlinable
    public init(
        method: Method, directives: RequestDirectives, hasAuthorization: Bool, hasPassCookie: Bool, isBound: Bool
    ) {
        self.method = method
        self.directives = directives
        self.hasAuthorization = hasAuthorization
        self.hasPassCookie = hasPassCookie
        self.isBound = isBound
    }
}

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
