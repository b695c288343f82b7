import Bytes
import HTTPSemantics
import Telemetry
import Upstream

/// Where requests for some hosts and paths go, and by which rules. Immutable.
final class Route: Sendable {
    let host: HostPattern?
    let path: ByteSlice
    let origin: Origin
    /// Where requests that go here are counted: those of the origin on the loop that has this.
    let upstreamMetrics: UpstreamMetrics
    /// What the origin is asked for, if not the host that the client asked for.
    let hostForOrigin: ByteSlice?
    let isCached: Bool
    /// Whether requests share their fetches; else each miss fetches for itself.
    let isCoalesced: Bool
    let policy: CachingPolicy
    /// A request with one of these goes past the cache.
    private let passCookies: CookiePatterns
    /// Fields without which no request does so: none where there are no such cookies.
    private let passFields: FieldSet
    /// A request with more ranges than this gets the whole (RFC 9110 §14.2).
    let maxRanges: Int
    /// Whether a range of what is not stored is asked for as it is; else the whole is fetched, and the range served
    /// from that.
    let asksForParts: Bool
    let key: KeyPolicy
    /// What a client may say of how its request came.
    let keyedForwarding: KeyedForwarding
    /// Whether `key` is path and query as sent.
    let hasPlainKey: Bool
    /// Whether every request matches.
    let takesAll: Bool

    /// - Parameter passCookies: those of `proxy`, which all routes without their own share.
    init(
        _ settings: RouteSettings, origin: Origin, _ proxy: ProxySettings, passCookies: CookiePatterns,
        _ metrics: LoopMetrics
    ) {
        host = settings.host
        path = ByteSlice(settings.path == "/" ? "" : settings.path)
        self.origin = origin
        upstreamMetrics = metrics.upstream(origin.settings.name)
        hostForOrigin = origin.settings.host.map { ByteSlice($0) }
        isCached = settings.isCached ?? proxy.caching.isEnabled
        isCoalesced = settings.isCoalesced ?? proxy.coalescing.isEnabled
        policy = CachingPolicy(for: settings, proxy)
        self.passCookies = settings.passCookies.map { CookiePatterns($0) } ?? passCookies
        passFields = self.passCookies.isEmpty ? [] : FieldSet(.cookie)
        maxRanges = proxy.caching.maxRanges
        asksForParts = maxRanges > 0 && (settings.rangeMisses ?? proxy.caching.rangeMisses) == .part
        var key = settings.key
        // An index of its own for each loop, as it has its own route.
        key.query = settings.key.query
        key.countsAliases = proxy.forwarding.sendsOddNames
        self.key = key
        keyedForwarding = KeyedForwarding(key.fields)
        hasPlainKey = key.isPlain
        takesAll = host == nil && path.isEmpty
    }

    /// Whether a request goes past the cache by one of its cookies. Allocates nothing; without such cookies, or without
    /// `Cookie`, one test of bits.
    @inline(__always)
    func hasPassCookie(_ request: FieldView) -> Bool {
        !request.present.isDisjoint(with: passFields) && passCookies.occur(in: request)
    }

    /// Whether every request is passed: nothing is stored, and nothing shared.
    var passesAll: Bool { !isCached && !isCoalesced }

    /// Why the origin is asked where nothing is known of a URL (RFC 9211 §2.2).
    var missReason: ForwardReason { isCached ? .uriMiss : .bypass }

    /// Whether a request for `path` at `host` goes here. `host` is without a port.
    func matches(host: Span<UInt8>, path requested: Span<UInt8>) -> Bool {
        if let only = self.host, !only.matches(host) { return false }
        let path = path
        let prefix = path.span
        guard requested.count >= prefix.count, requested.extracting(0..<prefix.count).isEqual(to: prefix) else {
            return false
        }
        // Only at a segment's end: `/static` is not the beginning of `/statics`.
        return requested.count == prefix.count || prefix.count == 0 || prefix[prefix.count - 1] == UInt8(ascii: "/")
            || requested[prefix.count] == UInt8(ascii: "/")
    }
}

extension RouteSettings {
    /// Whether every request that matches `other` matches this one too (`Route.matches`).
    public func covers(_ other: RouteSettings) -> Bool {
        if let host, other.host.map(host.covers) != true { return false }
        guard other.path.hasPrefix(path) else { return false }
        return path.hasSuffix("/") || other.path == path || other.path.dropFirst(path.count).hasPrefix("/")
    }
}

extension CachingPolicy {
    /// The operator's, with what follows from other settings.
    fileprivate init(for route: RouteSettings, _ proxy: ProxySettings) {
        self = proxy.caching.policy
        if let lifetimes = route.defaultLifetimes { defaultLifetimes = lifetimes }
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
    }
}
