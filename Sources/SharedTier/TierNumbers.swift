/// The sizes that the tier chooses itself.
package enum TierNumbers {
    /// A look-up brings bodies up to this size, in bytes, with it, so that most hits take one round trip. The function
    /// copies such a body once more than `XRANGE` does, 70 µs of the engine's time at this size.
    package static let inlineLength = 64 << 10
    /// The most bytes of content in one entry of a stream: appending one takes the engine 0.1 ms.
    package static let entryLength = 256 << 10
    /// The most bytes of the text of a `Vary`.
    package static let mostVary = 8 << 10
    /// The entries that a follower asks for at once: 4 MiB at most.
    package static let entriesAtOnce = 16
    /// About how many purges the log has. A machine that missed more than these empties its memory.
    package static let purgesKept = 100_000
    /// The purges that a machine asks for at once: fewer than 64 MiB with the longest URLs.
    package static let purgesAtOnce = 250
    /// The greatest time, age and length that a machine believes, in milliseconds or bytes: sums of them fit a number. It is
    /// 140,000 years.
    package static let greatest: Int64 = 1 << 52
}
