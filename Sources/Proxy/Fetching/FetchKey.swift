import Bytes
import HTTPSemantics

/// What makes two fetches the same: only requests with equal keys share one.
struct FetchKey: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case get
        /// A HEAD fetch serves HEAD requests only: it brings no body.
        case head
        /// Like `get` for requests that carry `Authorization`: what they get may mostly not be shared (RFC 9111 §3.5), and requests
        /// without it should not have to wait to learn that.
        case authorizedGet
        /// A GET for one range, for all whom this range helps.
        case part(ByteRangeSpec, isAuthorized: Bool)
        /// Never shared, and never in the table.
        case alone
    }

    let kind: Kind
    let primary: CacheKey
    /// The requested variant, once the resource's `Vary` is known (RFC 9111 §4.1); before that `nil`.
    var variant: VariantKey?
    /// How often the request has been through here. Where an upstream leads back to this proxy, the request that a fetch sent must not wait for that
    /// same fetch: it makes one of its own, until it has come often enough to be refused (`Worker.passesThatAreALoop`).
    let passes: UInt8

    func hash(into hasher: inout Hasher) {
        // The primary key's hash is keyed and good; few keys differ in the variant alone.
        hasher.combine(primary.hash)
        hasher.combine(variant)
    }
}
