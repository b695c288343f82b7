/// How long readers may hold up a body that is not kept whole while others wait for more of it.
public struct HoldUpBound: Sendable {
    /// Nanoseconds that nothing at all may be read: longer than a client that reads well pauses, be it that its network
    /// changes or that its kernel takes bytes in bursts.
    public static let patience: Int64 = 5 * second
    /// How often who may hold up others looks whether it does, in nanoseconds.
    public static let interval: Int64 = second

    private static let second: Int64 = 1_000_000_000

    private let bytesPerSecond: Int

    /// - Parameter bytesPerSecond: that must be read while others wait; at most 1 GiB.
    public init(bytesPerSecond: Int) { self.bytesPerSecond = min(bytesPerSecond, 1 << 30) }

    /// How many are to be read in this time, at most `patience`.
    fileprivate func bytes(in nanoseconds: Int64) -> Int { Int(nanoseconds) * bytesPerSecond / Int(Self.second) }
}

/// How much too little those have read who hold up a body.
///
/// While it is held up, bytes are owed at the lowest rate, and what is read is taken off. That is one account for all
/// its readers, however many there are and in whatever order they stand still: together they hold it up no more than one
/// that reads at just that rate. What was read before gives nobody a right to stand still longer.
struct HoldUp: Sendable {
    private var owed = 0
    /// How far who held it up had read.
    private var reached = 0
    /// Up to when bytes are owed.
    private var countedUntil = Int64.min

    /// Who looks has been blocked, and has looked or begun to be so, for an interval: no more than that is counted.
    /// - Parameters:
    ///   - offset: how far who looks, and holds it up, has read.
    ///   - now: nanoseconds of the loops' clock.
    mutating func isTooLong(readTo offset: Int, at now: Int64, _ bound: HoldUpBound) -> Bool {
        let since = max(countedUntil, now - HoldUpBound.interval)
        countedUntil = max(countedUntil, now)
        owed = max(0, owed - max(0, offset - reached)) + bound.bytes(in: max(0, now - since))
        reached = max(reached, offset)
        return owed >= bound.bytes(in: HoldUpBound.patience)
    }
}
