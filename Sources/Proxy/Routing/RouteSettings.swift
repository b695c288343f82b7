public import HTTPSemantics

/// Which requests go to which upstream, and what differs for them.
public struct RouteSettings: Sendable, Equatable {
    /// The host of requests. `nil`: any.
    public var host: HostPattern?
    /// What the path begins with, at a `/` boundary: `/static` matches `/static` and `/static/a`, not `/statics`.
    public var path = "/"
    /// The upstream's name.
    public var upstream: String
    /// Whether responses are stored. `nil`: as `CachingSettings.isEnabled`.
    public var isCached: Bool?
    /// Whether requests in flight share a fetch. `nil`: as `CoalescingSettings.isEnabled`.
    public var isCoalesced: Bool?
    /// `nil`: as `CachingSettings.policy` says.
    public var defaultLifetimes: DefaultLifetimes?
    /// What becomes of responses with `Set-Cookie`. `nil`: as `CachingSettings.policy` says.
    public var setCookie: CachingPolicy.SetCookieRule?
    /// For responses that do not say, in seconds (RFC 5861). `nil`: as `CachingSettings.policy` says.
    public var staleWhileRevalidate: UInt32?
    /// In seconds, as the one before.
    public var staleIfError: UInt32?
    /// How stale a response may be when no origin answers, in seconds. `nil`: as `CachingSettings.policy` says.
    public var staleIfUnreachable: UInt32?
    /// Whether what has no lifetime goes to all who wait, whatever cookies they sent. `nil`: as
    /// `CachingSettings.policy` says.
    public var sharesAcrossCookies: Bool?
    /// `nil`: as `CachingSettings.passCookies`.
    public var passCookies: [CookiePattern]?
    /// `nil`: as `CachingSettings.rangeMisses`.
    public var rangeMisses: RangeMissRule?
    /// `nil`: as `CachingSettings.policy` says.
    public var ignoredRequestDirectives: RequestDirectivePolicy?
    /// Whether the answer to a POST is stored for GET and HEAD where it says so itself: explicit lifetime, and
    /// `Content-Location` equal to the target (RFC 9110 §9.3.3). Off, since then the content of one client's request
    /// decides what others see.
    public var storesPostAnswers = false
    /// What makes two requests the same, beyond method, scheme, host and path.
    public var key = KeyPolicy()

    /// Everything else as for all.
    public init(upstream: String) { self.upstream = upstream }
}
