public import HTTPSemantics

/// The identity of a fetch: only requests with equal keys share one.
public struct FetchKey: Hashable, Sendable {
    /// What the fetch is for.
    public enum Kind: Hashable, Sendable {
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

    /// What the fetch is for.
    public let kind: Kind
    /// The primary key of the request.
    public let primary: CacheKey
    /// The requested variant, once the resource's `Vary` is known (RFC 9111 §4.1); before that `nil`. Where only
    /// matching requests share responses, it includes their distinguishing fields.
    public let variant: VariantKey?
    /// How often the request has passed this proxy. Where an upstream leads back to this proxy, the request that a
    /// fetch sent must not wait for that same fetch: it starts a fetch of its own, until it has come often enough to be
    /// refused.
    public let visits: UInt8

    /// - Parameter visits: how often the request has passed this proxy.
    public init(_ kind: Kind, _ primary: CacheKey, _ variant: VariantKey?, visits: UInt8) {
        self.kind = kind
        self.primary = primary
        self.variant = variant
        self.visits = visits
    }

    /// The key of a fetch that requests the same representation in another way.
    public func asking(_ kind: Kind) -> FetchKey { FetchKey(kind, primary, variant, visits: visits) }

    /// The alias of the same fetch under the key and variant where its response belongs.
    public func moved(to primary: CacheKey, variant: VariantKey?) -> FetchKey {
        FetchKey(kind, primary, variant, visits: visits)
    }

    public func hash(into hasher: inout Hasher) {
        // The primary key's hash is keyed and good; few keys differ in the variant alone.
        hasher.combine(primary.hash)
        hasher.combine(variant)
    }
}
