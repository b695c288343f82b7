import Bytes

/// How much the cache in memory may hold and how it is divided.
///
/// A default stands here with its reason and nowhere else. The ranges a configuration file may choose from stand in
/// `Configuration`.
public struct StorageSettings: Sendable, Equatable {
    /// Bytes for all bodies together, stored or on their way: a hard ceiling. The default is small enough for the
    /// smallest machines in use.
    public var memory = 256 << 20
    /// Share of `memory` that bodies in use may take at the expense of what rests, in percent: the rest stays with
    /// that, so that a burst of downloads cannot empty the cache. What is free anyway they may borrow. In use are those
    /// on their way, and stored ones while clients are sent them: not the same as `coalesced_in_flight_bytes`, which
    /// are the former.
    public var inUsePercent = 50
    /// Bytes of the largest response that is stored: a quarter of `memory`, so that one response cannot empty the
    /// cache. What cannot arrive within `inUseLimit` cannot be stored either: see `objectLimit`.
    public var maxObjectSize = 64 << 20
    /// Variants stored of one resource, which differ in what `Vary` names; and as many of which there are parts.
    /// Languages and codings come in hundreds of spellings; each that is stored has all of them copied in a list, some
    /// microseconds under a lock.
    public var maxVariants = 500
    /// Parts of the index, each under a lock of its own; a power of two. Several times the cores of a large machine, so
    /// that two loops seldom meet.
    public var shards = 64
    /// Bytes of a response that is not stored which may wait for its slowest reader: a few socket buffers, so that all
    /// the fetches of an origin together stay below the in-flight share.
    public var streamingWindow = 256 << 10
    /// Share of the S3-FIFO probation queue, in percent. The paper has ten (Yang et al., SOSP 2023); half of that keeps
    /// a little more in nearly all traces (docs/benchmarks.md, *Cache efficiency*).
    public var smallQueuePercent = 5

    public init() {}

    /// Bytes of `inUsePercent`. The bar above `ResponseStore` shows it beside the other limits.
    public var inUseLimit: Int { memory / 100 * inUsePercent }

    /// Bytes beyond `inUseLimit`, or of what is free, for bodies that are streamed through a window: one that is kept
    /// whole gets none of them beyond its first `GrowingBody.smallestWindow`. So slow readers of what is stored do not
    /// stop all fetches. An eighth of the limit: with the defaults, 128 of the smallest windows.
    public var windowReserve: Int { min(max(inUseLimit / 8, 2 * GrowingBody.smallestWindow), inUseLimit / 2) }

    /// Bytes that bodies in use, those in windows among them, may take at the expense of what rests: however small the
    /// share, what two of them need to go on.
    public var windowLimit: Int {
        min(max(inUseLimit + windowReserve, min(2 * GrowingBody.smallestWindow, memory / 4)), memory)
    }

    /// `maxObjectSize`, or less where `memory` is small.
    public var objectLimit: Int { min(maxObjectSize, inUseLimit, windowLimit - windowReserve) }
}
