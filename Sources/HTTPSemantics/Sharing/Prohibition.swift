/// The first rule that forbids both storing and sharing a response. The names are the same in `Cache-Status`, the log
/// and the metrics.
public enum Prohibition: Sendable, CaseIterable {
    /// The request bypassed the cache, by a cookie that the operator named (`CookiePattern`).
    case passCookie
    /// The request was sent on an origin connection that is reserved for its client connection.
    case boundConnection
    case status
    case requestNoStore
    case noStore
    case `private`
    case authorization
    case setCookie
    case varyStar
    /// `Vary` names a field with which the origin receives more than the client sent, such as `X-Forwarded-For`
    /// (`FieldSight`).
    case varyForwarded

    /// The fixed name, for `detail` in `Cache-Status` (RFC 9211 §2.8).
    public var name: StaticString {
        switch self {
        case .passCookie: "pass-cookie"
        case .boundConnection: "bound-connection"
        case .status: "status"
        case .requestNoStore: "request-no-store"
        case .noStore: "no-store"
        case .private: "private"
        case .authorization: "authorization"
        case .setCookie: "set-cookie"
        case .varyStar: "vary-star"
        case .varyForwarded: "vary-forwarded"
        }
    }
}

extension ResponseFacts {
    func prohibition(answering request: RequestFacts, policy: CachingPolicy) -> Prohibition? {
        if request.hasPassCookie { return .passCookie }
        if request.isBound { return .boundConnection }
        // §3: the status is final; 206 and 304 only as far as understood, and a 304 is not a response of its own.
        if status.isInformational || status == .notModified { return .status }
        // §5.2.2.3: this cache implements all caching requirements of the registered statuses.
        if contains(.mustUnderstand), !status.isRegistered { return .status }
        if request.directives.noStore { return .requestNoStore }
        // Before the response's directives: they are for this client's response and do not apply to responses for
        // others.
        if request.hasAuthorization, !contains(.allowsAuthorized) { return .authorization }
        if isForOneRequest { return .status }
        // §5.2.2.3: a cache that understands `must-understand` and the status ignores `no-store`.
        if contains(.noStore), !contains(.mustUnderstand) { return .noStore }
        if contains(.private) { return .private }
        if contains(.setsCookie), !allowsCookie(policy) { return .setCookie }
        if contains(.variesByEverything) { return .varyStar }
        if contains(.variesByMore) { return .varyForwarded }
        return nil
    }

    private func allowsCookie(_ policy: CachingPolicy) -> Bool {
        switch policy.setCookie {
        case .whenPublic: contains(.public)
        case .never: false
        case .always: true
        }
    }

    /// RFC 6585 §3 to §6: 428, 429, 431 and 511 "MUST NOT be stored by a cache". Other responses that concern one
    /// request are not for other clients either, whatever their directives: many origins send the same `Cache-Control`
    /// with all responses, and a client with a malformed request could replace the response for all clients. If the
    /// status may concern the resource too, an explicit lifetime, or one that the operator gives to this status, states
    /// that it does. 401 is among them although no RFC forbids storing it: a copy made for a client without credentials
    /// would answer clients that have some. `sharing` handles 416.
    private var isForOneRequest: Bool {
        guard status.concernsRequest, status != .rangeNotSatisfiable else { return false }
        return !(status.mayConcernResource && lifetimeSource.isStated && lifetime > 0)
    }
}
