import HTTPSemantics
import Storage

/// What makes two fetches the same: only requests with equal keys share one.
struct FetchKey: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// A GET for the whole. Requests that carry `Authorization` have their own: what they get may mostly not be
        /// shared (RFC 9111 §3.5), and requests without it should not have to wait to learn that.
        case get(isAuthorized: Bool)
        /// A HEAD fetch serves HEAD requests only: it brings no body.
        case head(isAuthorized: Bool)
        /// A GET for one range, for all whom this range helps.
        case part(ByteRangeSpec, isAuthorized: Bool)
        /// No fetch's own: an alias by which one of those for parts is found, whatever its range.
        case anyPart(isAuthorized: Bool)
        /// Never shared, and never in the table.
        case unshared
    }

    let kind: Kind
    let primary: CacheKey
    /// The requested variant, once the resource's `Vary` is known (RFC 9111 §4.1); before that `nil`. Where responses
    /// are shared only among requests that are alike, what tells them apart is part of it.
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
    ///   - separates: whether requests that are not alike have another.
    func fetchKey(_ kind: FetchKey.Kind, knowing resource: CachedResource?, separates: Bool = false) -> FetchKey {
        let rule = resource?.knownVary.first
        // Those that nothing tells apart keep the usual key: late ones find what was begun before it was known.
        if separates, kind != .unshared, let variant = ownVariant(under: rule ?? .none) {
            return FetchKey(kind, key, variant, visits: visits)
        }
        let variant = rule.map { rule in
            let fields = fields
            return VariantKey(fields.view, under: rule)
        }
        return FetchKey(kind, key, variant, visits: visits)
    }

    /// What it looks under where requests that are not alike do not share; `nil` where nothing tells it apart.
    func ownVariant(under rule: VaryRule) -> VariantKey? {
        let fields = fields
        return VariantKey(fields.view, under: rule, tellingApartBy: route.policy)
    }

    /// Whether an origin that says nothing of reuse gives it what it gives the request with the head `other`, as far as
    /// fields tell.
    func isAlike(_ other: SharedHead) -> Bool {
        // Those of a crowd have one head.
        if sharedHead === other { return true }
        let (own, others) = (fields, other.value.fields)
        return route.policy.areAlike(own.view, others.view)
    }

    /// Whether it may get what no other request gets, where the response says nothing of that: by its cookies, its
    /// credentials, or fields that most visitors of a page do not share.
    var isOfSession: Bool { hasAuthorization || isPeculiar }

    /// Whether it has fields, such as cookies, that most visitors of a page do not share.
    var isPeculiar: Bool {
        if hasCookies { return true }
        let fields = fields
        return route.policy.isPeculiar(fields.view)
    }
}
