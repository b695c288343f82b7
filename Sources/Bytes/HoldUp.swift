/// The limit on how long readers may hold up a body that is not kept whole while others wait for more of it.
public struct HoldUpBound: Sendable {
    /// Nanoseconds for which the readers that hold up a body may read no byte at all: longer than a client that reads
    /// well pauses, for example because its network changes or because its kernel accepts bytes in bursts.
    public static let patience: Int64 = 5 * second
    /// How often a reader that may hold up others checks whether it does, in nanoseconds.
    public static let interval: Int64 = second

    private static let second: Int64 = 1_000_000_000

    private let bytesPerSecond: Int

    /// - Parameter bytesPerSecond: the rate that must be read while others wait; at most 1 GiB.
    public init(bytesPerSecond: Int) { self.bytesPerSecond = min(bytesPerSecond, 1 << 30) }

    /// How many bytes must be read in `nanoseconds`, which are at most `patience`.
    fileprivate func bytes(in nanoseconds: Int64) -> Int { Int(nanoseconds) * bytesPerSecond / Int(Self.second) }
}

/// By how many bytes the readers that hold up a body are behind the lowest allowed rate.
///
/// While the body is held up, bytes become owed at that rate, and the bytes that are read are subtracted. A body has
/// one such account for all its readers, however many there are and in whatever order they pause: together they hold up
/// the body no longer than one reader that reads at exactly that rate. Bytes read earlier give no reader the right to a
/// longer pause.
///
/// A reader that is too slow is cut off, and does not go on with a fetch of its own. Such a fetch needs a strong entity
/// tag, and holds a slot and a connection of the origin for as long as its client likes: clients that hold up others on
/// purpose would use up the slots.
struct HoldUp: Sendable {
    private var owed = 0
    /// The offset up to which the readers that held up the body had read.
    private var reached = 0
    /// The time up to which bytes have become owed.
    private var countedUntil = Int64.min

    /// The calling reader has been blocked, and last checked or became blocked an interval ago: a longer time is not
    /// counted.
    /// - Parameters:
    ///   - offset: how far the calling reader, which holds up the body, has read.
    ///   - now: nanoseconds of the loops' clock.
    mutating func isTooLong(readTo offset: Int, at now: Int64, _ bound: HoldUpBound) -> Bool {
        let since = max(countedUntil, now - HoldUpBound.interval)
        countedUntil = max(countedUntil, now)
        owed = max(0, owed - max(0, offset - reached)) + bound.bytes(in: max(0, now - since))
        reached = max(reached, offset)
        return owed >= bound.bytes(in: HoldUpBound.patience)
    }
}
