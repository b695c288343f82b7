public import Bytes

/// The operator's settings for storing and reusing responses, for one route. Immutable; every duration in seconds.
///
/// The defaults have their home here, each with its reason.
public struct CachingPolicy: Sendable, Equatable {
    /// How to treat a response that sets a cookie. RFC 9111 §7.3 lets a cache store it; the default here does not,
    /// since storing it is the commonest way for one user's session to reach another user. The raw values are the words
    /// of the configuration file.
    public enum SetCookieRule: String, Sendable, CaseIterable {
        /// Stored and shared only with an explicit `public`.
        case whenPublic = "public-only"
        case never
        /// The field does not matter, as in RFC 9111.
        case always
    }

    /// The names of the targeted fields this cache obeys, in lower case; the first that parses applies (RFC 9213 §2.2).
    public var targetedFields: [ByteSlice] = [ByteSlice("cdn-cache-control")] {
        didSet { targetedKnown = targetedFields.reduce(into: []) { $0.insert(KnownField.recognise($1.span)) } }
    }
    /// The known fields among `targetedFields`. A message with none of them is not searched.
    private(set) var targetedKnown = FieldSet(.cdnCacheControl)

    /// Percent of the time since `Last-Modified` for which a response without explicit lifetime is fresh; 0 turns
    /// heuristics off, more than 100 counts as 100. RFC 9111 §4.2.2 names 10 as typical.
    public var heuristicPercent: UInt32 = 10
    /// The longest heuristic lifetime. A day: the origin stated no lifetime, and RFC 9111's predecessor required a
    /// warning beyond a day.
    public var heuristicLimit: UInt32 = 86_400
    /// The lifetimes of responses without a basis for a heuristic. None by default: only the operator knows whether
    /// such responses of an origin are the same for all clients.
    public var defaultLifetimes = StatusLifetimes(other: .zero)

    /// The lifetimes that responses get in place of their own, counted from their arrival. They also replace `no-cache`
    /// and the directives that forbid stale use (`must-revalidate`, `proxy-revalidate`, `s-maxage`). None by default.
    public var fixedLifetimes = StatusLifetimes()
    /// The shortest time for which a response that states a lifetime, or has a heuristic one, is fresh from its arrival
    /// on, in seconds. None by default: an origin that states a short lifetime has a reason.
    public var minLifetime: UInt32 = 0
    /// The longest such time. A year, as HTTP's authors recommended for `Expires` (RFC 2616 §14.21): some origins state
    /// a lifetime without an end, and their operators learn by complaints that it cannot be called back.
    public var maxLifetime: UInt32 = 365 * 86_400

    /// `stale-while-revalidate` (RFC 5861 §3) for responses that do not state it; 0 means none.
    public var staleWhileRevalidate: UInt32 = 0
    /// `stale-if-error` (RFC 5861 §4) for responses that do not state it; 0 means none.
    public var staleIfError: UInt32 = 0
    /// How stale a response may be if no origin responds at all and no directive forbids it (RFC 9111 §4.2.4,
    /// 'disconnected'); 0 means not at all. An hour gives the operator time to repair the origin.
    public var staleIfUnreachable: UInt32 = 3_600
    /// `s-maxage` implies `proxy-revalidate` (RFC 9111 §5.2.2.10), so such a response is never served stale. Many
    /// origins combine it with `stale-while-revalidate` all the same; false lets that directive take effect.
    public var sharedMaxAgeForbidsStale = true

    /// How to treat responses with `Set-Cookie`.
    public var setCookie: SetCookieRule = .whenPublic
    /// A 5xx response or a failed connection answers all waiting requests, instead of one attempt for each: this
    /// protects an origin in trouble from the load.
    public var sharesErrors = true
    /// Whether any response may be stored.
    public var storesResponses = true
    /// A response that has no lifetime, or is not stored, answers all waiting requests, whatever their cookies and
    /// other fields. If false, it answers only requests that match the fetching request
    /// (`ResponseFacts.Flags.separatesRequests`), unless it is an error or has `public`, `s-maxage`, `stale-if-error`
    /// or `stale-while-revalidate`.
    public var sharesAcrossCookies = false
    /// For a response that varies by `Accept-Encoding`, requests that accept the same common codings share a variant,
    /// for any order and weights of the codings (RFC 9111 §4.1 on normalising). Off by default: an origin may select by
    /// the weights.
    public var normalisesAcceptEncoding = false
    /// 206 parts are stored and combined (RFC 9111 §3.3, §3.4).
    public var storesPartialContent = true
    /// Responses to POST with explicit lifetime and matching `Content-Location` are stored for GET (RFC 9110 §9.3.3).
    public var storesPostAnswers = false
    /// The difference between `Date` and this host's clock counts as age (RFC 9111 §4.2.3, apparent_age). Turned off
    /// for origins whose clock is wrong.
    public var trustsDate = true

    /// Requests are forwarded with this proxy's knowledge of the client in place of the client's own fields
    /// (`RequestForwarding.ClientFields.append`), and with this proxy's hop in `Via`: see `FieldSight`.
    public var writesForwarded = true
    public var writesVia = true
    /// Some proxies are trusted: fields that state the sender are forwarded from their requests, and dropped from all
    /// others.
    public var forwardsSenders = false
    /// The request fields that rules of the operator write in place of the client's: see `FieldSight`.
    public var writtenFields: [WrittenField] = []
    /// Fields that stand in the route's key, names in any case.
    public var keyedFields: [ByteSlice] = []
    /// Request fields are forwarded whose names hold other bytes than letters, digits and hyphens. Then a variant is
    /// also selected by fields that some origins read as a field it varies by (`FieldAlias`).
    public var forwardsOddNames = false

    /// The fields in which responses name their tags, beside `Cache-Groups`.
    public var tagFields = TagFields.usual

    /// The request directives that this cache ignores.
    public var ignoredRequestDirectives: RequestDirectivePolicy = .honoursAll

    public init() {}
}
