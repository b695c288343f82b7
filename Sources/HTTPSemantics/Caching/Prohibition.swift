/// The first rule that forbids both to store a response and to share it. The names are those in `Cache-Status`, the log
/// and the metrics.
public enum Prohibition: Sendable, CaseIterable {
    /// The request went past the cache, by a cookie that the operator named (`CookiePattern`).
    case passCookie
    /// The request went over a connection to the origin that is its client connection's own.
    case boundConnection
    case status
    case requestNoStore
    case noStore
    case `private`
    case authorization
    case setCookie
    case varyStar
    /// `Vary` names a field that says more to the origin than to us, such as `X-Forwarded-For` (`FieldSight`).
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
        // §3: final; 206 and 304 only as far as understood, and a 304 is no response of its own.
        if status.isInformational || status == .notModified { return .status }
        // §5.2.2.3: all that caches must do with the registered ones is done here.
        if contains(.mustUnderstand), !status.isRegistered { return .status }
        if request.directives.noStore { return .requestNoStore }
        // Before what the response says: to this client alone, so that it is no word about what others get.
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

    /// RFC 6585 §3 to §6: 428, 429, 431 and 511 "MUST NOT be stored by a cache". Nor are other answers about one
    /// request for anybody else, whatever they say: many origins give all that they send the same `Cache-Control`, and
    /// a client with a wrong request could have it answer everybody's. Where the status may be about the resource too,
    /// a lifetime that the origin states is its word that it is. What 416 is for, `sharing` says.
    private var isForOneRequest: Bool {
        guard status.concernsRequest, status != .rangeNotSatisfiable else { return false }
        return !(status.mayConcernResource && lifetimeSource.isExplicit && lifetime > 0)
    }
}
