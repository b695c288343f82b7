/// A point in time on both clocks. The rules take it as an argument; no rule reads a clock.
///
/// Durations are always differences of `monotonic`, so that a step of the wall clock does not change the age of a
/// stored response; `wall` is only compared with dates in messages.
public struct Moment: Sendable, Hashable {
    /// Nanoseconds of the monotonic clock.
    public let monotonic: Int64
    /// Seconds since 1970-01-01 00:00:00 UTC.
    public let wall: Int64

    @inlinable
    public init(monotonic: Int64, wall: Int64) {
        self.monotonic = monotonic
        self.wall = wall
    }
}
