public import Bytes

/// What the operator decides about storing and reusing, for one route. Immutable; every duration in seconds.
///
/// A default stands here with its reason and nowhere else.
public struct CachingPolicy: Sendable, Equatable {
    /// What to do with a response that sets a cookie. RFC 9111 §7.3 lets a cache store it; we do not by default,
    /// since it is the commonest way for one user's session to reach another.
    /// The raw values are the words of the configuration file.
    public enum SetCookieRule: String, Sendable, CaseIterable {
        /// Stored and shared only with an explicit `public`.
        case whenPublic = "public-only"
        case never
        /// The field does not matter, as in RFC 9111.
        case always
    }

    /// The names of the targeted fields we obey, in lower case, the first that parses wins (RFC 9213 §2.2).
    public var targetedFields: [ByteSlice] = [ByteSlice("cdn-cache-control")] {
        didSet { targetedKnown = targetedFields.reduce(into: []) { $0.insert(KnownField.recognise($1.span)) } }
    }
    /// The targeted fields as known-field numbers. A message with none of them is not searched.
    private(set) var targetedKnown = FieldSet(.cdnCacheControl)

    /// Percent of the time since `Last-Modified` for which a response without explicit lifetime is fresh; 0 turns
    /// heuristics off, more than 100 counts as 100. RFC 9111 §4.2.2 names 10 as typical.
    public var heuristicPercent: UInt32 = 10
    /// The longest heuristic lifetime. A day: the origin promised nothing, and past it RFC 9111's predecessor wanted a
    /// warning.
    public var heuristicLimit: UInt32 = 86_400
    /// The lifetimes where the response gives nothing to guess it by. None: only the operator knows whether such an
    /// origin's responses are the same for everybody.
    public var defaultLifetimes = DefaultLifetimes()

    /// `stale-while-revalidate` (RFC 5861 §3) for responses that do not say; 0 means none.
    public var staleWhileRevalidate: UInt32 = 0
    /// `stale-if-error` (RFC 5861 §4) for responses that do not say; 0 means none.
    public var staleIfError: UInt32 = 0
    /// How stale a response may be when no origin answers at all and nothing forbids it (RFC 9111 §4.2.4,
    /// 'disconnected'); 0 means not at all. An hour gives somebody the time to mend the origin.
    public var staleIfUnreachable: UInt32 = 3_600
    /// `s-maxage` means `proxy-revalidate` (RFC 9111 §5.2.2.10), so such a response is never served stale. Many
    /// origins pair it with `stale-while-revalidate` all the same; turned off, their wish is honoured.
    public var sharedMaxAgeForbidsStale = true

    /// What becomes of responses with `Set-Cookie`.
    public var setCookie: SetCookieRule = .whenPublic
    /// A 5xx or a failed connection answers all who already wait, instead of one attempt each: an origin in trouble is
    /// spared the crowd.
    public var sharesErrors = true
    /// Responses may be stored at all.
    public var storesResponses = true
    /// A response without a lifetime, or that is not stored, goes to all who wait, whatever cookies and other fields
    /// they sent. Off: to those whose requests are alike the one it was fetched for
    /// (`ResponseFacts.Flags.separatesRequests`), unless it is an error or says `public`, `s-maxage`, `stale-if-error`
    /// or `stale-while-revalidate`.
    public var sharesAcrossCookies = false
    /// Where a response varies by `Accept-Encoding`, requests that accept the same of the common codings get the same
    /// variant, whatever order and weights they name (RFC 9111 §4.1 on normalising). Off: an origin may go by the
    /// weights.
    public var normalisesAcceptEncoding = false
    /// 206 parts are stored and combined (RFC 9111 §3.3, §3.4).
    public var storesPartialContent = true
    /// Answers to POST with explicit lifetime and matching `Content-Location` are stored for GET (RFC 9110 §9.3.3).
    public var storesPostAnswers = false
    /// The difference between `Date` and our clock counts as age (RFC 9111 §4.2.3, apparent_age). Turned off for
    /// origins whose clock is wrong.
    public var trustsDate = true

    /// Requests go on with what we know of the client in place of what it says
    /// (`RequestForwarding.ClientFields.append`), and with our hop in `Via`: see `FieldSight`.
    public var writesForwarded = true
    public var writesVia = true
    /// Some proxies are trusted: what their requests say of who sent them goes on, and what others say does not.
    public var forwardsSenders = false
    /// Fields that stand in the route's key, names in any case.
    public var keyedFields: [ByteSlice] = []
    /// Request fields go on whose names hold other bytes than letters, digits and hyphens; then a variant is also
    /// chosen by fields that some origins take for one it varies by (`FieldAlias`).
    public var forwardsOddNames = false

    /// Which directives of clients count for nothing.
    public var ignoredRequestDirectives: RequestDirectivePolicy = .honoursAll

    public init() {}
}
