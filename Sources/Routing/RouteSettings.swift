package import Bytes
package import HTTPSemantics

/// The upstream of some requests, and the settings that differ for them.
package struct RouteSettings: Sendable, Equatable {
    /// The host of the requests. `nil`: any.
    package var host: HostPattern?
    /// The prefix of the path, which ends at a `/` boundary: `/static` matches `/static` and `/static/a`, not
    /// `/statics`.
    package var path = "/"
    /// The scheme of the requests. `nil`: both.
    package var scheme: ClientScheme?
    /// The upstream's name; empty if the route has an answer of its own (`redirect`, `respond`).
    package var upstream: String
    /// Where all requests are redirected to.
    package var redirect: RedirectSettings?
    /// The response to all requests.
    package var respond: RespondSettings?
    /// Whether the route needs no upstream.
    package var isAnsweredHere: Bool { redirect != nil || respond != nil }
    /// Whether responses are stored. `nil`: as `CachingSettings.isEnabled`.
    package var isCached: Bool?
    /// Whether requests in flight share a fetch. `nil`: as `CoalescingSettings.isEnabled`.
    package var isCoalesced: Bool?
    /// `nil`: as `CachingSettings.policy` says.
    package var defaultLifetimes: StatusLifetimes?
    /// How responses with `Set-Cookie` are treated. `nil`: as `CachingSettings.policy` says.
    package var setCookie: CachingPolicy.SetCookieRule?
    /// For responses without this directive, in seconds (RFC 5861). `nil`: as `CachingSettings.policy` says.
    package var staleWhileRevalidate: UInt32?
    /// In seconds, as `staleWhileRevalidate`.
    package var staleIfError: UInt32?
    /// How stale a response may be when no origin answers, in seconds. `nil`: as `CachingSettings.policy` says.
    package var staleIfUnreachable: UInt32?
    /// Whether a response without a freshness lifetime is sent to all waiting requests, even if their cookies differ.
    /// `nil`: as `CachingSettings.policy` says.
    package var sharesAcrossCookies: Bool?
    /// `nil`: as `CachingSettings.passCookies`.
    package var passCookies: [CookiePattern]?
    /// Cookies that are taken out of requests. `nil`: as `CachingSettings.strippedCookies`.
    package var strippedCookies: [CookiePattern]?
    /// The site's languages, language tags of RFC 5646: `Accept-Language` becomes the best of them, or goes. Empty: the
    /// field stays as it was sent.
    package var languages: [ByteSlice] = []
    /// The lifetimes of responses in place of their own. `nil`: as `CachingSettings.policy` says.
    package var fixedLifetimes: StatusLifetimes?
    /// The shortest time for which a response is fresh that states a lifetime, in seconds. `nil`: as
    /// `CachingSettings.policy` says.
    package var minLifetime: UInt32?
    /// The longest such time, in seconds, as `minLifetime`.
    package var maxLifetime: UInt32?
    /// `nil`: as `CachingSettings.rangeMisses`.
    package var rangeMisses: RangeMissRule?
    /// `nil`: as `CachingSettings.policy` says.
    package var ignoredRequestDirectives: RequestDirectivePolicy?
    /// Whether the response to a POST is stored for GET and HEAD if it says so itself, by an explicit lifetime and a
    /// `Content-Location` equal to the target (RFC 9110 §9.3.3). Off by default, since the content of one client's
    /// request would decide which response other clients get.
    package var storesPostAnswers = false
    /// The clients whose requests are served; empty: all. Others get 403.
    package var allow: [AddressPattern] = []
    /// Clients that get 403, even if `allow` has them.
    package var deny: [AddressPattern] = []
    /// `nil`: no limit.
    package var rateLimit: RateLimitSettings?
    /// Whether there are access rules.
    var hasAccessRules: Bool { !allow.isEmpty || !deny.isEmpty || rateLimit != nil }
    /// The changes in the fields of requests to the upstream, after `ProxySettings.requestFields`.
    package var requestFields = FieldChanges()
    /// The changes in the fields of responses, after `ProxySettings.responseFields`.
    package var responseFields = FieldChanges()
    /// The response fields that name tags, in lower case, beside `Cache-Groups`.
    package var tagFields = TagFields.usual.names
    /// The files that replace the content of responses with these statuses.
    package var errorPages: [ErrorPageSettings] = []
    /// Whether `Location` and `Content-Location` that name the upstream name instead the host that the client asked.
    /// Off by default: most origins make relative references, or use the host of the request.
    package var rewritesLocation = false
    /// The parts of the cache key besides method, scheme, host and path.
    package var key = KeyPolicy()

    /// All other settings are the proxy's.
    package init(upstream: String) { self.upstream = upstream }
}
