/// The closed sets of names that are spelled the same in the metrics, the access log, `Cache-Status` and the tests:
/// lower-case words joined by hyphens, as in the configuration and in HTTP. A name is public contract: dashboards are
/// built on it. Add cases, never rename one.
public protocol PublicName: CaseIterable, Hashable, Sendable where AllCases == [Self] {
    /// The fixed outward spelling.
    var name: StaticString { get }
}

extension PublicName where Self: RawRepresentable, RawValue == UInt8 {
    /// The case's place among `allCases`: raw values are not set by hand.
    @inlinable var position: Int { Int(rawValue) }
}

/// Request methods as the metrics tell them apart (RFC 9110 §9.3); a method outside the list is `.other`, so that
/// a client cannot make up new label values.
public enum MethodClass: UInt8, PublicName {
    case get, head, options, post, put, patch, delete, other

    public var name: StaticString {
        switch self {
        case .get: "get"
        case .head: "head"
        case .options: "options"
        case .post: "post"
        case .put: "put"
        case .patch: "patch"
        case .delete: "delete"
        case .other: "other"
        }
    }
}

/// The first digit of a status code (RFC 9110 §15).
public enum StatusClass: UInt8, PublicName {
    case informational, successful, redirection, clientError, serverError

    /// Codes outside 100...599 count as server errors (RFC 9110 §15).
    @inlinable public init(status: UInt16) {
        switch status {
        case 100..<200: self = .informational
        case 200..<300: self = .successful
        case 300..<400: self = .redirection
        case 400..<500: self = .clientError
        default: self = .serverError
        }
    }

    public var name: StaticString {
        switch self {
        case .informational: "1xx"
        case .successful: "2xx"
        case .redirection: "3xx"
        case .clientError: "4xx"
        case .serverError: "5xx"
        }
    }
}

/// What the cache made of one request: the one word that ends its look-up.
public enum Verdict: UInt8, PublicName {
    /// Served from the store, fresh.
    case hit
    /// Served from the store though not fresh: stale-while-revalidate, stale-if-error, `max-stale` (RFC 9111 §4.2.4).
    case stale
    /// Fetched, by this request or by the one it joined.
    case miss
    /// Stored, found current by the origin (304) and served from the store (RFC 9111 §4.3).
    case revalidated
    /// Forwarded without asking the store: a method, a rule or a key known to be unshareable.
    case pass
    /// Answered by the proxy itself in place of a response: 502, 503, 504; a bound was hit, the client wanted only what
    /// is stored, or OPTIONS was to go no further (`Max-Forwards: 0`).
    case synthetic
    /// Turned away before any look-up: bad syntax, an unknown host.
    case refused

    public var name: StaticString {
        switch self {
        case .hit: "hit"
        case .stale: "stale"
        case .miss: "miss"
        case .revalidated: "revalidated"
        case .pass: "pass"
        case .synthetic: "synthetic"
        case .refused: "refused"
        }
    }
}

/// The part one request had in a shared operation.
public enum Role: UInt8, PublicName {
    /// No operation: a hit, or an answer of the proxy's own.
    case none
    /// Fetched for itself only; nobody could join.
    case alone
    /// Started the operation that others could join.
    case led
    /// Joined before the response head was there.
    case joined
    /// Joined a body that was already growing.
    case joinedLate

    public var name: StaticString {
        switch self {
        case .none: "none"
        case .alone: "alone"
        case .led: "led"
        case .joined: "joined"
        case .joinedLate: "joined-late"
        }
    }
}

/// What happened at the in-flight table.
public enum CoalescingEvent: UInt8, PublicName {
    /// A request started an operation that others could join.
    case led
    /// A request started one for itself; nobody could join.
    case alone
    /// A request joined one that had no response head yet.
    case joined
    /// A request joined one whose body was already growing.
    case joinedLate
    /// A waiter was sent to fetch for itself: the response turned out not to be shareable (RFC 9111 §3).
    case released
    /// An operation had stalled: the next request starts another in its place.
    case overtaken
    /// A request was turned away: too many waiters or too many operations.
    case refused

    public var name: StaticString {
        switch self {
        case .led: "led"
        case .alone: "alone"
        case .joined: "joined"
        case .joinedLate: "joined-late"
        case .released: "released"
        case .overtaken: "overtaken"
        case .refused: "refused"
        }
    }
}

/// How an exchange with an origin failed: where it happened, in the order of an exchange.
public enum UpstreamFailure: UInt8, PublicName {
    /// We have no descriptor, memory or port left for a connection: another server would not help.
    case unavailable
    /// The name did not resolve.
    case resolve
    /// The connection was refused or reset, or the server unreachable.
    case connect
    /// The connection was not established in time.
    case connectTimeout
    /// The request could not be written.
    case send
    /// The server did not take the request in time.
    case sendTimeout
    /// The connection ended before a response head.
    case closed
    /// No response head in time.
    case headTimeout
    /// The response head was malformed (RFC 9112).
    case head
    /// The response head has more bytes or field lines than are read.
    case headTooLarge
    /// The body was cut off or its framing malformed.
    case body
    /// The body stalled.
    case bodyTimeout

    public var name: StaticString {
        switch self {
        case .unavailable: "unavailable"
        case .resolve: "resolve"
        case .connect: "connect"
        case .connectTimeout: "connect-timeout"
        case .send: "send"
        case .sendTimeout: "send-timeout"
        case .closed: "closed"
        case .headTimeout: "head-timeout"
        case .head: "head"
        case .headTooLarge: "head-too-large"
        case .body: "body"
        case .bodyTimeout: "body-timeout"
        }
    }
}

/// What became of a response that might be stored, or of a stored one that might be freshened.
public enum StoreResult: UInt8, PublicName {
    case stored
    /// The key was invalidated or purged since the fetch began, or something newer is stored.
    case outdated
    /// Larger than the largest that is stored.
    case tooLarge
    /// The memory is full, and nothing is left to evict.
    case noRoom
    /// Not the whole body.
    case incomplete
    /// What was to be freshened is no longer stored.
    case gone

    public var name: StaticString {
        switch self {
        case .stored: "stored"
        case .outdated: "outdated"
        case .tooLarge: "too-large"
        case .noRoom: "no-room"
        case .incomplete: "incomplete"
        case .gone: "gone"
        }
    }
}

/// The protocol version of a request, as the access log prints it.
public enum ProtocolVersion: UInt8, PublicName {
    case unknown, http10, http11

    public var name: StaticString {
        switch self {
        case .unknown: "-"
        case .http10: "HTTP/1.0"
        case .http11: "HTTP/1.1"
        }
    }
}
