/// Which requests go to which upstream, and what differs for them.
public struct RouteSettings: Sendable, Equatable {
    /// The host, in lower case and without a port. `nil`: any.
    public var host: String?
    /// What the path begins with, at a `/` boundary: `/static` matches `/static` and `/static/a`, not `/statics`.
    public var path = "/"
    /// The upstream's name.
    public var upstream: String
    /// Whether responses are stored. `nil`: as `CachingSettings.isEnabled`.
    public var isCached: Bool?
    /// `nil`: as `CachingSettings.requestDirectives`.
    public var requestDirectives: RequestDirectivesRule?
    /// Whether the answer to a POST is stored for GET and HEAD where it says so itself: explicit lifetime, and `Content-Location` equal
    /// to the target (RFC 9110 §9.3.3). Off, since then the content of one client's request decides what others see.
    public var storesPostAnswers = false
    public var key = KeySettings()

    public init(upstream: String) { self.upstream = upstream }
}

/// What makes two requests the same, beyond method, scheme, host and path.
public struct KeySettings: Sendable, Equatable {
    /// Which parameters of the query belong to the key. All are sent upstream.
    public var query = QueryPolicy.all
    /// Parameters in any order are the same request.
    public var sortsQuery = false
    /// Request fields whose values belong to the key, in lower case.
    public var fields: [String] = []
    /// Cookies whose values belong to the key.
    public var cookies: [String] = []

    public init() {}
}

/// Which query parameters belong to the key.
public enum QueryPolicy: Sendable, Equatable {
    case all
    case none
    /// Only these, by name.
    case keep([String])
    /// All but these, by name.
    case drop([String])
}
