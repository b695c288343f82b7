import Bytes
import HTTPSemantics

/// What makes two fetches the same: only requests with equal keys share one.
struct FetchKey: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case get
        /// A HEAD fetch serves HEAD requests only: it brings no body.
        case head
        /// Like `get` for requests that carry `Authorization`: what they get may mostly not be shared (RFC 9111 §3.5), and nobody
        /// without should have to wait to learn that.
        case authorizedGet
        /// A GET for one range, for all whom this range helps.
        case part(ByteRangeSpec, isAuthorized: Bool)
        /// Never shared: the number makes it the only one of its kind.
        case alone(UInt64)
    }

    let kind: Kind
    let primary: CacheKey
    /// The requested variant, once the resource's `Vary` is known (RFC 9111 §4.1); before that `nil`.
    var variant: VariantKey?
    /// How often the request has been through here. An upstream that leads back to this proxy sends the request for which a fetch waits: it must not wait
    /// for that fetch itself. It makes one of its own, until it has come often enough to be refused (`Worker.passesThatAreALoop`).
    let passes: UInt8

    func hash(into hasher: inout Hasher) {
        // The primary key's hash is keyed and good; the variant only sets apart a few.
        hasher.combine(primary.hash)
        hasher.combine(variant)
    }
}
