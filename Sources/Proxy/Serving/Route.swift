import Bytes
import HTTPSemantics

/// Where requests for some hosts and paths go, and by which rules. Immutable.
final class Route: Sendable {
    let host: ByteSlice?
    let path: ByteSlice
    let origin: Origin
    let isCached: Bool
    let policy: CachingPolicy
    let key: KeyPolicy
    /// What a client may say of how its request came.
    let keyedForwarding: KeyedForwarding
    /// Whether `key` is path and query as sent.
    let hasPlainKey: Bool
    /// Whether every request matches.
    let takesAll: Bool

    init(host: ByteSlice?, path: ByteSlice, origin: Origin, isCached: Bool, policy: CachingPolicy, key: KeyPolicy) {
        self.host = host
        self.path = path
        self.origin = origin
        self.isCached = isCached
        self.policy = policy
        self.key = key
        keyedForwarding = KeyedForwarding(key.fields)
        hasPlainKey = key.isPlain
        takesAll = host == nil && path.isEmpty
    }

    /// Whether a request for `path` at `host` goes here. `host` is in lower case and without a port.
    func matches(host: Span<UInt8>, path requested: Span<UInt8>) -> Bool {
        if let only = self.host, !only.span.isEqualIgnoringCase(to: host) { return false }
        let path = path
        let prefix = path.span
        guard requested.count >= prefix.count, requested.extracting(0..<prefix.count).isEqual(to: prefix) else { return false }
        // Only at a segment's end: `/static` is not the beginning of `/statics`.
        return requested.count == prefix.count || prefix.count == 0 || prefix[prefix.count - 1] == UInt8(ascii: "/")
            || requested[prefix.count] == UInt8(ascii: "/")
    }
}

extension Route {
    convenience init(_ settings: RouteSettings, origin: Origin, _ proxy: ProxySettings) {
        var policy = proxy.caching.policy
        if let ignored = settings.ignoredRequestDirectives { policy.ignoredRequestDirectives = ignored }
        policy.writesForwarded = proxy.forwarding.sendsXForwarded
        policy.writesVia = proxy.forwarding.viaName != nil
        policy.storesPostAnswers = settings.storesPostAnswers
        policy.maxRanges = proxy.caching.maxRanges
        policy.asksForParts = (settings.rangeMisses ?? proxy.caching.rangeMisses) == .part
        self.init(
            host: settings.host.map { ByteSlice($0) }, path: ByteSlice(settings.path == "/" ? "" : settings.path), origin: origin,
            isCached: settings.isCached ?? proxy.caching.isEnabled, policy: policy, key: settings.key)
    }
}
