import HTTPSemantics
import Storage

/// What a fetch is for, decided at look-up. Immutable, and an object because it is handed from hand to hand.
final class FetchPlan: Sendable {
    let key: FetchKey
    /// Why the origin is asked (RFC 9211 §2.2).
    let reason: ForwardReason
    /// The stored response to validate, as it is in the store.
    let stored: StoredResponse?
    /// The one to fall back on when the origin fails. The same, but that it says so where one of its groups was invalidated.
    let fallback: StoredResponse?
    /// All that was stored under the key when the request was looked up: its variants' validators are offered (RFC 9111 §4.3.1).
    let resource: CachedResource?

    /// Whether the client's preconditions and range go to the origin as they came, and its answer comes back as it is. Otherwise the
    /// whole response is asked for, with the validators of what is stored, and the client's wishes are met from that.
    let isTransparent: Bool

    /// A refresh in the background: it belongs to no client, so it is not cut when nobody waits (RFC 5861 §3).
    let isRefresh: Bool

    /// The range that is asked for; `nil`: the whole.
    let range: ByteRangeSpec?
    /// The parts that are stored: what arrives goes with them if it has their strong entity tag (RFC 9111 §3.4). In `stored` too where they are
    /// all that is wanted, and are only to be validated.
    let parts: StoredResponse?

    init(
        key: FetchKey, reason: ForwardReason, stored: StoredResponse?, fallback: StoredResponse?, resource: CachedResource?,
        isTransparent: Bool, isRefresh: Bool = false, range: ByteRangeSpec? = nil, parts: StoredResponse? = nil
    ) {
        self.key = key
        self.reason = reason
        self.stored = stored
        self.fallback = fallback
        self.resource = resource
        self.isTransparent = isTransparent
        self.isRefresh = isRefresh
        self.range = range
        self.parts = parts
    }

    /// Whether the fetch may serve others than the request it was made for.
    var isShared: Bool {
        switch key.kind {
        case .get, .head, .authorizedGet, .part: true
        case .alone: false
        }
    }
}
