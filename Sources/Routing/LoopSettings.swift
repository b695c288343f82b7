import Bytes
public import HTTPSemantics
public import Telemetry
package import Upstream

/// The settings in the form that a loop uses: names are resolved to objects, texts converted to bytes. Immutable; a
/// reload makes a new object, and each loop then replaces its own.
///
/// Each loop has a copy, because it retains routes and texts with every request, and a reference count changed by
/// several cores moves between their caches.
public final class LoopSettings: Sendable {
    /// What this object was made of.
    package let settings: ProxySettings
    /// The number of loads before this one: the same in all copies.
    public let number: Int
    /// In the order of the configuration.
    public let origins: [Origin]
    private let httpRoutes: RouteList
    /// The same object if no route is for one scheme only.
    private let httpsRoutes: RouteList
    /// The route of requests that match no other: to the first upstream.
    private let lastRoute: Route
    /// The only route of requests; `nil` if it depends on scheme, host or path, or if only some hosts are served.
    public let onlyRoute: Route?
    /// How requests are forwarded.
    public let requestForwarding: RequestForwarding
    /// What is added to responses.
    public let responseForwarding: ResponseForwarding
    /// The rules for the fields of a response to a request without a route; `nil`: none.
    public let unroutedFields: FieldRules?
    /// Writes `Proxy-Status`; `nil`: off.
    public let proxyStatus: ProxyStatusWriter?
    /// The timeouts of clients.
    public let timeouts: ClientTimeouts
    /// The limits of request heads.
    public let headLimits: HeadLimits
    /// The proxies that may name the client.
    public let trustedProxies: TrustedProxies
    /// Which clients may send `PURGE`.
    public let purgeAccess: PurgeAccess
    /// The most requests on one connection.
    public let mostRequests: Int
    /// Finds requests that have passed this proxy before.
    public let loopDetection: LoopDetection
    private let hosts: [HostPattern]
    /// Finds a host; `nil` if there are few, which are searched from first to last.
    private let hostIndex: HostIndex?

    /// - Parameters:
    ///   - upstreams: at least one.
    ///   - number: the number of loads before.
    ///   - previous: origins with unchanged settings are taken over from it, with their fetches.
    ///   - metrics: the loop's metrics, which have the upstreams already; unused ones if these settings serve no
    ///     requests.
    package init(
        _ settings: ProxySettings, upstreams: [UpstreamSettings], number: Int = 0, previous: LoopSettings? = nil,
        metrics: LoopMetrics = LoopMetrics()
    ) {
        precondition(!upstreams.isEmpty, "a proxy of nothing")
        self.settings = settings
        self.number = number
        let former = Self.byName(previous?.origins ?? [])
        let origins = upstreams.map { upstream in
            if let same = former[upstream.name], same.settings == upstream {
                same
            } else {
                Origin(upstream, after: former[upstream.name])
            }
        }
        self.origins = origins
        hosts = settings.hosts
        hostIndex = settings.hosts.count > HostIndex.mostWalked ? HostIndex(settings.hosts) : nil
        let name = ByteSlice(settings.forwarding.viaName ?? ForwardingSettings.programName)
        loopDetection = LoopDetection(name: name)
        let via = ByteBuffer(capacity: 64)
        if settings.forwarding.viaName != nil { loopDetection.writeVia(received: .http11, to: via) }
        requestForwarding = RequestForwarding(
            via: settings.forwarding.viaName.map { ByteSlice($0) },
            clientFields: settings.forwarding.sendsXForwarded ? .append : .off,
            forwardsOddNames: settings.forwarding.sendsOddNames,
            trustsProxies: !settings.clients.trustedProxies.isEmpty,
            defaultHost: ByteSlice(upstreams[0].servers.first?.host ?? "localhost"))
        responseForwarding = ResponseForwarding(
            via: via.copied(), cacheStatus: settings.forwarding.sendsCacheStatus ? CacheStatusWriter(name: name) : nil)
        proxyStatus = settings.forwarding.sendsProxyStatus ? ProxyStatusWriter(name: name) : nil
        unroutedFields = RouteFields(nil, settings).stored
        timeouts = ClientTimeouts(settings.clients, settings.coalescing)
        headLimits = HeadLimits(settings.clients)
        trustedProxies = TrustedProxies(settings.clients.trustedProxies)
        purgeAccess = PurgeAccess(settings.purge.methodsFrom, trustedProxies)
        mostRequests = settings.clients.maxRequestsPerConnection ?? .max
        let named = Self.byName(origins)
        let passCookies = CookiePatterns(settings.caching.passCookies)
        // Whether access rules depend on the path.
        let compares =
            settings.routes.contains(where: \.hasAccessRules) && settings.routes.contains { $0.path != "/" }
        let routes = settings.routes.compactMap { route in
            (route.isAnsweredHere ? origins[0] : named[route.upstream]).map {
                Route(route, origin: $0, settings, passCookies: passCookies, metrics, comparesSpellings: compares)
            }
        }
        httpRoutes = RouteList(routes.filter { $0.scheme != .https }, comparesSpellings: compares)
        httpsRoutes =
            routes.allSatisfy { $0.scheme == nil }
            ? httpRoutes : RouteList(routes.filter { $0.scheme != .http }, comparesSpellings: compares)
        lastRoute = Route(
            RouteSettings(upstream: upstreams[0].name), origin: origins[0], settings, passCookies: passCookies, metrics,
            comparesSpellings: compares)
        let first = routes.first ?? lastRoute
        onlyRoute = settings.hosts.isEmpty && first.takesAll && first.scheme == nil ? first : nil
    }

    private static func byName(_ origins: [Origin]) -> [String: Origin] {
        Dictionary(origins.map { ($0.settings.name, $0) }) { first, _ in first }
    }

    /// A copy for one loop, in separate objects except the origins, whose fetches all loops share.
    /// - Parameter metrics: the loop's metrics. They change to these upstreams.
    public func copy(countingIn metrics: LoopMetrics) -> LoopSettings {
        metrics.change(toUpstreams: origins.map(\.settings.name))
        return LoopSettings(
            settings, upstreams: origins.map(\.settings), number: number, previous: self, metrics: metrics)
    }

    /// Whether requests for `authority` are served at all (RFC 9110 §15.5.20).
    public func serves(_ authority: Span<UInt8>) -> Bool {
        guard !hosts.isEmpty else { return true }
        let host = authority.hostPart
        if let hostIndex { return hostIndex.contains(host) }
        for served in hosts where served.matches(host) { return true }
        return false
    }

    /// The client's address as the access log shows it: the one that a trusted proxy names, or the peer's own.
    @_lifetime(copy peer, copy fields)
    public func client(_ peer: Span<UInt8>, isTrusted: Bool, in fields: FieldView) -> Span<UInt8> {
        guard isTrusted else { return peer }
        let named = trustedProxies.client(in: fields)
        return named.isEmpty ? peer : named
    }

    /// Whether there are trusted proxies.
    public var trustsProxies: Bool { !settings.clients.trustedProxies.isEmpty }

    /// The other routes with access rules that a request matches if an origin reads its path as another one
    /// (`PathSpelling`). No array is allocated for a path that can be read in one way only.
    /// - Parameter route: the request's own.
    public func routesOfOtherSpellings(
        _ head: RequestHead, _ fields: FieldView, _ scheme: ClientScheme, besides route: Route
    ) -> [Route] {
        guard let rules = route.rules, rules.comparesSpellings else { return [] }
        let path = fields.bytes.extracting(head.target.path.range)
        guard PathSpelling.isAmbiguous(path) else { return [] }
        let list = scheme == .https ? httpsRoutes : httpRoutes
        var others: [Route] = []
        let host = fields.bytes.extracting(head.authority.range).hostPart
        for other in list.routes(ofReadings: PathSpelling.readings(of: path), host: host)
        where other !== route && other.rules?.access != nil && !others.contains(where: { $0 === other }) {
            others.append(other)
        }
        return others
    }

    /// The first route that a request matches.
    public func route(_ head: RequestHead, _ fields: FieldView, _ scheme: ClientScheme) -> Route {
        switch scheme {
        case .http: httpRoutes.first(head, fields) ?? lastRoute
        case .https: httpsRoutes.first(head, fields) ?? lastRoute
        }
    }

    /// The first route that a request for `url` matches.
    package func route(of url: ParsedURL) -> Route {
        let fields = url.fields
        return route(url.head, fields.view, url.scheme)
    }
}

extension Span where Element == UInt8 {
    /// The host of a valid authority, without the port (RFC 3986 §3.2).
    public var hostPart: Span<UInt8> {
        @_lifetime(copy self)
        get {
            guard count > 0 else { return self }
            if self[0] == UInt8(ascii: "["), let end = firstIndex(of: UInt8(ascii: "]")) { return extracting(0...end) }
            return extracting(0..<(firstIndex(of: UInt8(ascii: ":")) ?? count))
        }
    }
}
