import Synchronization

/// Two counts of the last ten seconds, as answers and the failures among them. Any thread, without a lock.
///
/// Each of ten buckets is one word: the second that it counts, the first count, the second count. A bucket whose second
/// has passed is replaced as a whole, so that no thread sees a count of one second under another.
struct SlidingCount: ~Copyable, Sendable {
    /// The length of the window in seconds.
    static let seconds = 10

    private let buckets: InlineArray<10, Atomic<UInt64>> = .init { _ in Atomic<UInt64>(0) }

    /// A bucket has 24 bits for its second, which repeats after half a year, and 20 for each count: a million a second.
    private static let bits: UInt64 = 20
    private static let countMask: UInt64 = 1 << bits - 1
    private static let secondMask: UInt64 = 1 << 24 - 1

    private static func second(_ now: Int64) -> UInt64 { UInt64(max(0, now)) / 1_000_000_000 & secondMask }

    /// - Parameter now: nanoseconds of the monotonic clock.
    func add(_ first: UInt64, _ second: UInt64 = 0, at now: Int64) {
        let time = Self.second(now)
        let added = first << Self.bits | second
        let index = Int(time % UInt64(Self.seconds))
        var word = buckets[index].load(ordering: .relaxed)
        while true {
            if word >> (2 * Self.bits) == time {
                buckets[index].add(added, ordering: .relaxed)
                return
            }
            let fresh = time << (2 * Self.bits) | added
            let (done, present) = buckets[index].weakCompareExchange(
                expected: word, desired: fresh, ordering: .relaxed)
            if done { return }
            word = present
        }
    }

    /// Both counts of the ten seconds that end at `now`.
    func counts(at now: Int64) -> (first: Int, second: Int) {
        let time = Self.second(now)
        var (first, second): (UInt64, UInt64) = (0, 0)
        for index in buckets.indices {
            let word = buckets[index].load(ordering: .relaxed)
            guard (time &- word >> (2 * Self.bits)) & Self.secondMask < UInt64(Self.seconds) else { continue }
            first += word >> Self.bits & Self.countMask
            second += word & Self.countMask
        }
        return (Int(first), Int(second))
    }

    /// Counts from zero.
    func clear() {
        for index in buckets.indices { buckets[index].store(0, ordering: .relaxed) }
    }
}
