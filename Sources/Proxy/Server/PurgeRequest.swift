package import Bytes
package import Routing

/// The stored responses that an operator purges: all that any member names. The admin listener makes it from the lines
/// that it is sent.
package struct PurgeRequest: Sendable {
    /// Each for itself only, with all its variants and under any equivalent query (No-Vary-Search).
    package var urls: [ParsedURL] = []
    /// URLs without a query: each also for every URL below it, as a route's `path` matches.
    package var prefixes: [ParsedURL] = []
    /// The names of tags and cache groups, of whichever origin; none is empty.
    package var tags: [ByteSlice] = []
    package var isOfEverything = false
    /// Whether the responses become stale instead of being removed: they are served under the rules for stale responses,
    /// and for `PurgeSettings.softGrace` while they are refreshed.
    package var isSoft = false

    package init() {}
}

/// The result of a purge.
package struct PurgeOutcome: Sendable, Equatable {
    /// How many stored responses were removed or made stale.
    package var count: Int
    /// Whether `count` is the exact number, not the most that it can be: a response may be named twice, or wait to be freed
    /// after another purge.
    package var isExact: Bool

    /// For the answer and the log.
    package func text(of request: PurgeRequest) -> String {
        let responses = "\(isExact || count == 0 ? "" : "at most ")\(count) stored response\(count == 1 ? "" : "s")"
        return request.isSoft ? "made \(responses) stale" : "purged \(responses)"
    }
}
