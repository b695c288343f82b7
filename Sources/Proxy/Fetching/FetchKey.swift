import HTTPSemantics
import Storage

/// The identity of a fetch: only requests with equal keys share one.
struct FetchKey: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// A GET for the whole. Requests with `Authorization` have a key of their own: most of their responses may not
        /// be shared (RFC 9111 §3.5), and requests without it should not have to wait to learn that.
        case get(isAuthorized: Bool)
        /// A HEAD fetch serves HEAD requests only: it brings no body.
        case head(isAuthorized: Bool)
        /// A GET for one range, for all requests that this range helps.
        case part(ByteRangeSpec, isAuthorized: Bool)
        /// Not the key of any fetch: an alias that finds a fetch of a part, whatever its range.
        case anyPart(isAuthorized: Bool)
        /// Never shared, and never in the table.
        case unshared
    }

    let kind: Kind
    let primary: CacheKey
    /// The requested variant, once the resource's `Vary` is known (RFC 9111 §4.1); before that `nil`. Where only
    /// matching requests share responses, it includes their distinguishing fields.
    let variant: VariantKey?
    /// How often the request has passed this proxy. Where an upstream leads back to this proxy, the request that a
    /// fetch sent must not wait for that same fetch: it starts a fetch of its own, until it has come often enough to be
    /// refused (`Worker.visitsThatAreALoop`).
    let visits: UInt8

    fileprivate init(_ kind: Kind, _ primary: CacheKey, _ variant: VariantKey?, visits: UInt8) {
        self.kind = kind
        self.primary = primary
        self.variant = variant
        self.visits = visits
    }

    /// The key of a fetch that requests the same representation in another way.
    func asking(_ kind: Kind) -> FetchKey { FetchKey(kind, primary, variant, visits: visits) }

    /// The alias of the same fetch under the key and variant where its response belongs.
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
    /// The key of a fetch for this request. Not an initializer, which would retain its arguments.
    /// - Parameters:
    ///   - resource: the stored responses and notes under the request's key.
    ///   - separates: whether requests that do not match have different keys.
    func fetchKey(_ kind: FetchKey.Kind, knowing resource: CachedResource?, separates: Bool = false) -> FetchKey {
        let rule = resource?.knownVary.first
        // Requests without distinguishing fields keep the plain key, so that they can still join a fetch begun before
        // the separation was known.
        if separates, kind != .unshared, let variant = ownVariant(under: rule ?? .none) {
            return FetchKey(kind, key, variant, visits: visits)
        }
        let variant = rule.map { rule in
            let fields = fields
            return VariantKey(fields.view, under: rule)
        }
        return FetchKey(kind, key, variant, visits: visits)
    }

    /// The variant that the request looks under where requests that do not match do not share; `nil` if it has no
    /// distinguishing fields.
    func ownVariant(under rule: VaryRule) -> VariantKey? {
        let fields = fields
        return VariantKey(fields.view, under: rule, tellingApartBy: route.policy)
    }

    /// Whether an origin whose responses say nothing of reuse gives this request the same response as the request with
    /// `other`, as far as the fields tell.
    func isAlike(_ other: ClientRequest) -> Bool {
        // Requests with the same bytes may share one object.
        if self === other { return true }
        let (own, others) = (fields, other.fields)
        return route.policy.areAlike(own.view, others.view)
    }

    /// Whether the request may get a response that no other request gets, if the response does not tell: because of its
    /// cookies, its credentials, or fields that most visitors of a page do not share.
    var isOfSession: Bool { hasAuthorization || isPeculiar }

    /// Whether the request has fields, such as cookies, that most visitors of a page do not share.
    var isPeculiar: Bool {
        if hasCookies { return true }
        let fields = fields
        return route.policy.isPeculiar(fields.view)
    }
}
