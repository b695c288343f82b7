/// Why other programs go another way than coalesced in some cases; `docs/conformance.md` has the reasons as a table.
/// What stands here may differ; what does not must agree.
enum Differences {
    /// Others count in whole seconds, so that these go either way from run to run.
    static let onTheSecond: Set<String> = [
        "max-age=1 ends after a second", "Expires in a second ends after a second", "Expires equal to Date",
        "max-age twice, the first shorter",
        "s-maxage takes precedence over a longer max-age", "a shorter CDN-Cache-Control",
        "must-revalidate is validated when stale",
        "stale-while-revalidate begins when max-age ends", "max-age=0 asks the origin after a second",
        "a tenth of the time since the change, over soon", "a response slower than its lifetime is stale on arrival",
    ]

    struct Group: Sendable {
        /// What the program does, and how far the clause lets it.
        let why: String
        let promises: Set<String>

        /// - Parameter promises: one a line.
        init(_ why: String, _ promises: String) {
            self.why = why
            self.promises = Set(promises.split(separator: "\n").map(String.init))
        }

        func covers(_ promise: String) -> Bool { promises.contains(promise) }
    }
}
