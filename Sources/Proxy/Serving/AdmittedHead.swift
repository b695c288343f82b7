import Bytes
import HTTPSemantics
import Storage

/// The head of an admitted request: copied out of its connection's buffer, with the values derived from it by the
/// settings and by the query rules known for its path. A value; a request derived from another changes a few of these
/// values and copies the rest as a whole.
struct AdmittedHead: Sendable {
    let head: RequestHead
    private(set) var fields: HeadBlock
    let directives: RequestDirectives
    let route: Route
    /// The scheme in the cache key.
    let scheme: ClientScheme
    /// Whether the request goes past the cache because of one of its cookies (`Route.passCookies`).
    let hasPassCookie: Bool
    /// Whether the request has any cookies: after a reload one of them may be a pass cookie.
    let hasCookies: Bool
    /// Whether the request has credentials that hold for its connection (NTLM, Negotiate).
    let hasConnectionCredentials: Bool
    /// How often the request has already passed this proxy (`LoopDetection`).
    let visits: UInt8
    /// The key by which the request is looked up and its fetch is found: the key of its URL, or the key derived from
    /// that under a variation (No-Vary-Search).
    private(set) var key: CacheKey
    /// The key of the request's URL as sent, if it differs from `key`.
    private var otherSentKey: CacheKey?
    /// The latest variation of the path when `key` was chosen.
    private(set) var variation: SearchVariation?

    /// The key of the request's URL as sent.
    var sentKey: CacheKey { otherSentKey ?? key }
    /// Whether requests for other URLs may have the same key.
    var isUnderVariation: Bool { otherSentKey != nil }

    init(
        _ head: RequestHead, _ fields: consuming HeadBlock, route: Route, scheme: ClientScheme = .http,
        key: consuming CacheKey, visits: Int
    ) {
        self.head = head
        self.scheme = scheme
        self.visits = UInt8(clamping: visits)
        directives = RequestDirectives(fields.view, ignoring: route.policy.ignoredRequestDirectives)
        hasPassCookie = route.hasPassCookie(fields.view)
        hasCookies = fields.present.contains(.cookie)
        hasConnectionCredentials = fields.view.hasConnectionCredentials
        self.fields = fields
        self.route = route
        self.key = key
    }

    /// This head under another key.
    func under(_ key: CacheKey, _ variation: SearchVariation?) -> AdmittedHead {
        var copy = self
        copy.key = key
        copy.otherSentKey = key == sentKey ? nil : sentKey
        copy.variation = variation
        return copy
    }

    /// This head without the fields of `left`, as if they had not been sent; the key stays.
    func without(_ left: FieldSet) -> AdmittedHead {
        var copy = self
        copy.fields = fields.without(left)
        return copy
    }

    /// Whether a request with this head, from such a client, is for the same URL: the bytes are the same, but only a
    /// trusted proxy may state the scheme.
    func isForSameURL(isFromTrustedProxy: Bool) -> Bool {
        ClientScheme(of: fields.view, isFromTrustedProxy: isFromTrustedProxy) == scheme
    }

    /// Whether `bytes` begin with this head, and so would be parsed as this head: a head marks its own end.
    func isBeginning(of bytes: Span<UInt8>) -> Bool {
        let head = fields.bytes
        return bytes.count >= head.count && head.span.isEqual(to: bytes.extracting(0..<head.count))
    }
}

/// An admitted head that many requests may share: the requests of a crowd whose heads have the same bytes. Its identity
/// stands for these bytes. Immutable, usable on any thread.
final class SharedHead: Sendable {
    let value: AdmittedHead

    init(_ value: consuming AdmittedHead) { self.value = value }
}
