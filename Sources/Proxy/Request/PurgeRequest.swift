package import Bytes
package import Routing

/// The stored responses that an operator purges: all that any member names. Made from the lines that the admin listener
/// is sent (`AdminPages`), or from a client's `PURGE` (`PurgeMethod`).
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

    /// Bytes of a purge's first line that the log shows: a URL may be longer than a line of the log.
    private static let shownInLog = 200

    /// What is purged, for the log.
    /// - Parameter lines: one for each URL, prefix or tag.
    package static func summary(of lines: [String]) -> String {
        let first = lines.first ?? ""
        let shown = first.utf8.count > shownInLog ? "\(first.prefix(shownInLog))…" : first
        return lines.count > 1 ? "\(shown), and \(lines.count - 1) more" : shown
    }
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
