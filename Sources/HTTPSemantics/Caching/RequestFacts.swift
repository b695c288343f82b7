/// What the cache rules look at in the request that a response answers, as `ResponseFacts` are what they look at in the
/// response. Each is to be stated: a forgotten one could hand on what is for one client.
public struct RequestFacts: Sendable, Equatable {
    /// What the origin was asked: GET, or HEAD for others who asked HEAD.
    public let method: Method
    /// The directives that are left after policy ignored some; `no-store` is never ignored (`RequestDirectivePolicy`).
    public let directives: RequestDirectives
    /// Whether it carried `Authorization`.
    public let hasAuthorization: Bool
    /// Whether it went past the cache, by a cookie that the operator named (`CookiePattern`).
    public let hasPassCookie: Bool

    /// Whether it went over a connection to the origin that is its client connection's own, on which it may have been
    /// answered as from a user that no field of it names (`FieldView.hasConnectionCredentials`).
    public let isBound: Bool

    /// A GET that asks for nothing special and comes from nobody in particular.
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
