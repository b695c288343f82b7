import Bytes
import HTTPSemantics
import Storage

/// The head of a request that was admitted: copied out of its connection's buffer, with what follows from it under the
/// settings and what is known about its path's queries. Requests of a crowd in the same words share one. Immutable,
/// free to go to any thread.
final class AdmittedHead: Sendable {
    let head: RequestHead
    let fields: HeadBlock
    let directives: RequestDirectives
    let route: Route
    /// That of its key.
    let scheme: ClientScheme
    /// Whether it goes past the cache by one of its cookies (`Route.passCookies`).
    let hasPassCookie: Bool
    /// Whether it has any cookies, with which a reload may have requests do so.
    let hasCookies: Bool
    /// How often the request has been through here already (`LoopDetection`).
    let visits: UInt8
    /// By which it is looked up and its fetch is found: the key of its URL, or what that becomes under a variation
    /// (No-Vary-Search).
    let key: CacheKey
    /// The key of its URL as sent, if that is another.
    private let otherSentKey: CacheKey?
    /// The variation that was the latest of its path when `key` was chosen.
    let variation: SearchVariation?

    /// The key of its URL as sent.
    var sentKey: CacheKey { otherSentKey ?? key }
    /// Whether requests for other URLs have the same key.
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
        self.fields = fields
        self.route = route
        self.key = key
        otherSentKey = nil
        variation = nil
    }

    /// The same under another key.
    init(_ other: AdmittedHead, key: CacheKey, variation: SearchVariation?) {
        head = other.head
        fields = other.fields
        directives = other.directives
        route = other.route
        scheme = other.scheme
        hasPassCookie = other.hasPassCookie
        hasCookies = other.hasCookies
        visits = other.visits
        self.key = key
        otherSentKey = key == other.sentKey ? nil : other.sentKey
        self.variation = variation
    }

    /// The same without the fields of `left`, as if they had not been sent; its key stays.
    init(_ other: AdmittedHead, without left: FieldSet) {
        head = other.head
        fields = other.fields.without(left)
        directives = other.directives
        route = other.route
        scheme = other.scheme
        hasPassCookie = other.hasPassCookie
        hasCookies = other.hasCookies
        visits = other.visits
        key = other.key
        otherSentKey = other.otherSentKey
        variation = other.variation
    }

    /// Whether a request with this head, from such a client, is for the same URL: the words are the same, but nobody
    /// believes everybody's word on the scheme.
    func isForSameURL(isFromTrustedProxy: Bool) -> Bool {
        let fields = fields
        return ClientScheme(of: fields.view, isFromTrustedProxy: isFromTrustedProxy) == scheme
    }

    /// Whether `bytes` begin with this head, and so would be parsed as it: a head marks its own end.
    func isBeginning(of bytes: Span<UInt8>) -> Bool {
        let head = fields.bytes
        return bytes.count >= head.count && head.span.isEqual(to: bytes.extracting(0..<head.count))
    }
}
