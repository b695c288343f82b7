/// How long later requests fetch alone because of a response that only its leader could have.
extension NotSharedReason {
    /// How long the reason is remembered, in nanoseconds.
    /// - Parameters:
    ///   - status: the status of the response that gave the reason.
    ///   - limit: `unshareable-ttl`.
    package func memory(after status: Status, atMost limit: Int64) -> Int64 {
        if self == .serverError { return Self.errorMemory }
        return status.concernsRequest ? min(limit, Self.requestErrorMemory) : limit
    }

    /// Where errors are not shared (`sharesErrors`): for this long, in nanoseconds, each request fetches alone. The
    /// origin may recover at any moment.
    private static let errorMemory: Int64 = 1_000_000_000
    /// Two requests in a row got an answer that concerns the request: perhaps all do, and for this long, in
    /// nanoseconds, requests do not wait for one another. No longer: two clients, which may provoke such answers on
    /// purpose, are no reason for every other client to fetch alone.
    private static let requestErrorMemory: Int64 = 5_000_000_000

    /// Whether the next response for the key is likely to be no more shareable, so that the reason is worth
    /// remembering.
    package var isRemembered: Bool {
        switch self {
        case .prohibited(.noStore), .prohibited(.private), .prohibited(.authorization), .prohibited(.setCookie),
            .prohibited(.varyStar), .prohibited(.varyForwarded), .prohibited(.status), .noCache, .mustRevalidate,
            .notCacheable, .incremental, .serverError, .part:
            true
        case .prohibited(.passCookie), .prohibited(.boundConnection), .prohibited(.requestNoStore), .method, .range,
            .outgrown, .search,
            .unlike:
            false
        }
    }
}
