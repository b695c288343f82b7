import HTTPSemantics
import Storage

/// What makes two fetches the same: only requests with equal keys share one.
struct FetchKey: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// A GET for the whole. Requests that carry `Authorization` have their own: what they get may mostly not be
        /// shared (RFC 9111 §3.5), and requests without it should not have to wait to learn that.
        case get(isAuthorized: Bool)
        /// A HEAD fetch serves HEAD requests only: it brings no body.
        case head
        /// A GET for one range, for all whom this range helps. `nil`: by which one of those in flight is found,
        /// whatever its range.
        case part(ByteRangeSpec?, isAuthorized: Bool)
        /// Never shared, and never in the table.
        case unshared
    }

    let kind: Kind
    let primary: CacheKey
    /// The requested variant, once the resource's `Vary` is known (RFC 9111 §4.1); before that `nil`. Where responses
    /// are shared only among requests with the same cookies, those are part of it.
    let variant: VariantKey?
    /// How often the request has been through here. Where an upstream leads back to this proxy, the request that a
    /// fetch sent must not wait for that same fetch: it makes one of its own, until it has come often enough to be
    /// refused (`Worker.visitsThatAreALoop`).
    let visits: UInt8

    fileprivate init(_ kind: Kind, _ primary: CacheKey, _ variant: VariantKey?, visits: UInt8) {
        self.kind = kind
        self.primary = primary
        self.variant = variant
        self.visits = visits
    }

    /// Of a fetch that asks for the same in another way.
    func asking(_ kind: Kind) -> FetchKey { FetchKey(kind, primary, variant, visits: visits) }

    /// Of the same fetch, for those who look where its response belongs.
    func moved(to primary: CacheKey, variant: VariantKey?) -> FetchKey {
        FetchKey(kind, primary, variant, visits: visits)
    }

    func hash(into hasher: inout Hasher) {
        // The primary key's hash is keyed and good; few keys differ in the variant alone.
        hasher.combine(primary.hash)
        hasher.combine(variant)
    }
}

extension ClientRequest {
    /// The key of a fetch for it. Not an initializer, which would retain what it is given.
    /// - Parameters:
    ///   - resource: what is known under the request's key.
    ///   - separatesCookies: whether requests with other cookies have another.
    func fetchKey(_ kind: FetchKey.Kind, knowing resource: CachedResource?, separatesCookies: Bool = false) -> FetchKey
    {
        var rule = resource?.knownVary.first
        // Those without cookies keep the usual key: late ones find what was begun before it was known.
        if separatesCookies, hasCookies { rule = (rule ?? .none).withCookies }
        let variant = rule.map { rule in
            let fields = fields
            return VariantKey(fields.view, under: rule)
        }
        return FetchKey(kind, key, variant, visits: visits)
    }

    /// Whether it has the cookies of `other`, in the same words, or neither has any.
    func hasSameCookies(as other: ClientRequest) -> Bool {
        if !hasCookies || !other.hasCookies { return hasCookies == other.hasCookies }
        let (own, others, rule) = (fields, other.fields, VaryRule.none.withCookies)
        return VariantKey(others.view, under: rule).matches(own.view, under: rule)
    }
}
