public import Bytes
public import HTTPSemantics
public import Telemetry
import Upstream

/// The origin of requests for some hosts and paths, and the rules for these requests. Immutable.
public final class Route: Sendable {
    let host: HostPattern?
    let path: ByteSlice
    /// The scheme of the requests; `nil`: both.
    let scheme: ClientScheme?
    /// The origin of the requests; of no use if the route has an answer of its own.
    public let origin: Origin
    /// The metrics of the origin, of the loop that has this copy of the route.
    public let upstreamMetrics: UpstreamMetrics
    /// The `Host` sent to the origin; `nil`: the client's.
    public let hostForOrigin: ByteSlice?
    /// Whether responses are stored.
    public let isCached: Bool
    /// The rules that a hit must obey as well; `nil`: none.
    public let rules: RouteRules?
    /// The rules for the fields of requests to the origin; `nil`: none.
    public let requestFields: FieldRules?
    /// The rules for response fields that are part of the stored head; `nil`: none.
    public let storedFields: FieldRules?
    /// Whether a request to which its client gave no identifier gets one.
    public let makesRequestID: Bool
    /// Whether responses are stored, and a hit obeys no `rules`.
    public let hasPlainHits: Bool
    /// The names of the origin that its responses must not name in `Location`; `nil`: they may name any host.
    public let originNames: OriginNames?
    /// Whether requests share their fetches; else each miss fetches for itself. Separate from `isCached`: a response
    /// that is not stored may be the same for all clients. Without coalescing, a stale response is refreshed once for
    /// all clients nevertheless, and facts learnt from a response (it is private, or too large to keep) are remembered.
    public let isCoalesced: Bool
    /// The rules of storing, reusing and sharing.
    public let policy: CachingPolicy
    /// A request with one of these cookies bypasses the cache.
    private let passCookies: CookiePatterns
    /// `Cookie`, without which no request has such a cookie; empty if `passCookies` is.
    private let passFields: FieldSet
    /// A request with more ranges than this gets the whole representation (RFC 9110 §14.2).
    public let maxRanges: Int
    /// Whether a range of which no part is stored is requested as a range; otherwise the whole representation is
    /// fetched, and the range served from it.
    public let asksForParts: Bool
    /// The parts of the cache key.
    public let key: KeyPolicy
    /// The fields that state an original URL, sender or method and are forwarded because they are part of `key`.
    public let keyedForwarding: KeyedForwarding
    /// Whether `key` consists of path and query as sent.
    @usableFromInline let hasPlainKey: Bool
    /// Whether every request of the route's scheme matches this route.
    let takesAll: Bool

    /// - Parameters:
    ///   - passCookies: the patterns of `proxy`, shared by all routes without patterns of their own.
    ///   - comparesSpellings: as in `RouteRules`.
    init(
        _ settings: RouteSettings, origin: Origin, _ proxy: ProxySettings, passCookies: CookiePatterns,
        _ metrics: LoopMetrics, comparesSpellings: Bool = false
    ) {
        host = settings.host
        path = ByteSlice(settings.path == "/" ? "" : settings.path)
        scheme = settings.scheme
        self.origin = origin
        upstreamMetrics = settings.isAnsweredHere ? metrics.unrouted : metrics.upstream(origin.settings.name)
        hostForOrigin = origin.settings.host.map { ByteSlice($0) }
        isCached = settings.isCached ?? proxy.caching.isEnabled
        let fields = RouteFields(settings, proxy)
        (requestFields, storedFields) = (fields.requests, fields.stored)
        makesRequestID =
            proxy.forwarding.requestID == .make || fields.requests?.usesRequestID == true
            || fields.sent?.usesRequestID == true
        rules = RouteRules(settings, proxy, responseFields: fields.sent, comparesSpellings: comparesSpellings)
        hasPlainHits = isCached && rules == nil
        originNames = settings.rewritesLocation ? OriginNames(origin.settings) : nil
        isCoalesced = settings.isCoalesced ?? proxy.coalescing.isEnabled
        var policy = CachingPolicy(for: settings, proxy)
        policy.writtenFields = fields.written
        // Requests that come without one have different ones at the origin.
        if makesRequestID {
            policy.writtenFields.append(.init(name: ByteSlice("x-request-id"), isSameForAll: false))
        }
        self.policy = policy
        self.passCookies = settings.passCookies.map { CookiePatterns($0) } ?? passCookies
        passFields = self.passCookies.isEmpty ? [] : FieldSet(.cookie)
        maxRanges = proxy.caching.maxRanges
        asksForParts = maxRanges > 0 && (settings.rangeMisses ?? proxy.caching.rangeMisses) == .part
        var key = settings.key
        // Setting `query` makes a new index: each loop has its own, as it has its own route.
        key.query = settings.key.query
        key.countsAliases = proxy.forwarding.sendsOddNames
        self.key = key
        keyedForwarding = KeyedForwarding(key.fields)
        hasPlainKey = key.isPlain
        takesAll = host == nil && path.isEmpty
    }

    /// Whether a request bypasses the cache because of one of its cookies. Allocates nothing; costs one test of bits if
    /// there are no such patterns or the request has no `Cookie`.
    @inline(__always)
    public func hasPassCookie(_ request: FieldView) -> Bool {
        !request.present.isDisjoint(with: passFields) && passCookies.occur(in: request)
    }

    /// The head of a response that arrived, after the route's rules for its fields.
    public func kept(_ head: HeadBlock, of status: Status) -> HeadBlock {
        storedFields?.applied(to: head, of: status) ?? head
    }

    /// The same, of a stored head that the response with the fields `update` changed.
    public func kept(_ head: HeadBlock, updatedBy update: FieldView) -> HeadBlock {
        storedFields?.applied(to: head, updatedBy: update) ?? head
    }

    /// The trailers of a response that the route's rules do not take away; `nil` if none are left.
    public func kept(trailers: ByteSlice) -> ByteSlice? {
        let kept = storedFields.map { $0.remaining(of: trailers) } ?? trailers
        guard let rules = rules?.responseFields else { return kept }
        return kept.flatMap { rules.remaining(of: $0) }
    }

    /// Whether every request is passed: no response is stored, and no fetch is shared.
    public var passesAll: Bool { !isCached && !isCoalesced }

    /// The `fwd` reason for a request whose URL has no stored response (RFC 9211 §2.2).
    public var missReason: ForwardReason { isCached ? .uriMiss : .bypass }

    /// The host and the beginning of the path, for messages.
    package var place: String { "\(host?.text ?? "")\(path.isEmpty ? "/" : String(path))" }

    /// Whether a request of the route's scheme for `path` at `host` matches this route. `host` is without a port.
    func matches(host: Span<UInt8>, path requested: Span<UInt8>) -> Bool {
        if let only = self.host, !only.matches(host) { return false }
        let path = path
        let prefix = path.span
        guard requested.count >= prefix.count, requested.extracting(0..<prefix.count).isEqual(to: prefix) else {
            return false
        }
        // Match only whole segments: `/static` does not match `/statics`.
        return requested.count == prefix.count || prefix.count == 0 || prefix[prefix.count - 1] == UInt8(ascii: "/")
            || requested[prefix.count] == UInt8(ascii: "/")
    }
}

extension RouteSettings {
    /// Whether every request that matches `other` matches this one too (`Route.matches`).
    package func covers(_ other: RouteSettings) -> Bool {
        if let host, other.host.map(host.covers) != true { return false }
        if let scheme, other.scheme != scheme { return false }
        guard other.path.hasPrefix(path) else { return false }
        return path.hasSuffix("/") || other.path == path || other.path.dropFirst(path.count).hasPrefix("/")
    }
}

extension CachingPolicy {
    /// The policy from the configuration, with the members that follow from other settings.
    fileprivate init(for route: RouteSettings, _ proxy: ProxySettings) {
        self = proxy.caching.policy
        if let lifetimes = route.defaultLifetimes { defaultLifetimes = lifetimes }
        if let lifetimes = route.fixedLifetimes { fixedLifetimes = lifetimes }
        if let time = route.minLifetime { minLifetime = time }
        if let time = route.maxLifetime { maxLifetime = time }
        if let rule = route.setCookie { setCookie = rule }
        if let time = route.staleWhileRevalidate { staleWhileRevalidate = time }
        if let time = route.staleIfError { staleIfError = time }
        if let time = route.staleIfUnreachable { staleIfUnreachable = time }
        if let shares = route.sharesAcrossCookies { sharesAcrossCookies = shares }
        if let ignored = route.ignoredRequestDirectives { ignoredRequestDirectives = ignored }
        storesResponses = route.isCached ?? proxy.caching.isEnabled
        writesForwarded = proxy.forwarding.sendsXForwarded
        writesVia = proxy.forwarding.viaName != nil
        forwardsSenders = !proxy.clients.trustedProxies.isEmpty
        keyedFields = route.key.fields
        forwardsOddNames = proxy.forwarding.sendsOddNames
        storesPostAnswers = route.storesPostAnswers
        tagFields = TagFields(route.tagFields)
    }
}
