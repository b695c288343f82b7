import HTTPSemantics
import Storage

/// What a fetch is for, decided at look-up.
struct FetchPlan: Sendable {
    let key: FetchKey
    /// Why the origin is asked (RFC 9211 §2.2).
    let reason: ForwardReason
    /// The stored response to validate, or to fall back on when the origin fails.
    let stored: StoredResponse?
    /// All that was stored under the key when the request was looked up: its variants' validators are offered (RFC 9111 §4.3.1).
    let resource: CachedResource?

    /// Whether the client's preconditions and range go to the origin as they came, and its answer comes back as it is. Otherwise the
    /// whole response is asked for, with the validators of what is stored, and the client's wishes are met from that.
    let isTransparent: Bool

    /// Whether the fetch may serve others than the request it was made for.
    var isShared: Bool {
        switch key.kind {
        case .get, .head, .authorizedGet: true
        case .alone: false
        }
    }
}

/// Why a request went to the origin. The raw value is the `fwd` of `Cache-Status` (RFC 9211 §2.2).
enum ForwardReason: String, Sendable {
    case uriMiss = "uri-miss"
    case varyMiss = "vary-miss"
    case stale
    /// The request's directives wanted it.
    case request
    case method
    case partial
    /// The route is not cached, or the key is known not to be shareable.
    case bypass
}
