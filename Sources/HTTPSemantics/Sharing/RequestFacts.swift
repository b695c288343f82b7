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
