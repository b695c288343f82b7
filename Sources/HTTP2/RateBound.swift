/// How often a peer may do something: `burst` times at once, and `perSecond` times a second for as long as it likes (a
/// token bucket). A pure value: time is an argument.
package struct RateBound: Sendable {
    package let burst: Int64
    package let perSecond: Int64
    /// How many times are left, in billionths, at `counted`.
    private var left: Int64
    private var counted: Int64

    /// - Parameter now: nanoseconds of a clock that never goes back.
    package init(burst: Int64, perSecond: Int64, at now: Int64) {
        self.burst = burst
        self.perSecond = perSecond
        left = burst * Self.one
        counted = now
    }

    private static let one: Int64 = 1_000_000_000

    /// Counts one time.
    /// - Returns: false if it is one too many.
    package mutating func admit(at now: Int64) -> Bool {
        let (gained, overflow) = max(0, now - counted).multipliedReportingOverflow(by: perSecond)
        left = overflow || gained >= burst * Self.one - left ? burst * Self.one : left + gained
        counted = max(now, counted)
        guard left >= Self.one else { return false }
        left -= Self.one
        return true
    }
}
