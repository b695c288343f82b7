import Bytes

/// The size of the cache in memory, and its division.
///
/// Each default stands only here, with its reason. The ranges that a configuration file may choose from stand in
/// `Configuration`.
public struct StorageSettings: Sendable, Equatable {
    /// Bytes for all bodies together, stored or still arriving: a hard ceiling. The default is small enough for the
    /// smallest machines in use.
    public var memory = 256 << 20
    /// The share of `memory`, in percent, up to which bodies in use may displace resting bytes. The remaining share
    /// stays with the resting bytes, so that a burst of downloads cannot empty the cache. Bodies in use may borrow
    /// bytes that are free anyway. A body is in use while it arrives, and while a stored body is being sent.
    /// `coalesced_in_flight_bytes` is not the same: it counts only arriving bodies.
    public var inUsePercent = 50
    /// The size, in bytes, of the largest response that is stored: a quarter of `memory`, so that one response cannot
    /// empty the cache. A response that cannot arrive within `inUseLimit` cannot be stored either: see `objectLimit`.
    public var maxObjectSize = 64 << 20
    /// The most stored variants of one resource, which differ in the fields that `Vary` nominates; the same number
    /// again for variants of which only parts are stored. Languages and codings come in hundreds of spellings. Storing
    /// a variant copies the list of all of them, which takes some microseconds under a lock.
    public var maxVariants = 500
    /// The number of parts of the index, each with a lock of its own; a power of two. Several times the number of cores
    /// of a large machine, so that two loops seldom need the same lock.
    public var shards = 64
    /// How many bytes of a response that is not stored may wait for its slowest reader. A few socket buffers, so that
    /// all the fetches of an origin together stay below the in-flight share.
    public var streamingWindow = 256 << 10
    /// The share of the S3-FIFO probation queue, in percent. The paper has ten (Yang et al., SOSP 2023); half of that
    /// keeps a little more in nearly all traces (docs/benchmarks.md, *Cache efficiency*).
    public var smallQueuePercent = 5

    public init() {}

    /// The bytes of `inUsePercent`. The bar in the comment of `ResponseStore` shows this limit beside the others.
    public var inUseLimit: Int { memory / 100 * inUsePercent }

    /// Bytes beyond `inUseLimit`, or of the free bytes, that are reserved for bodies streamed through a window. A body
    /// that is kept whole takes none of them beyond its first `GrowingBody.smallestWindow`. So slow readers of stored
    /// responses do not stop all fetches. An eighth of the limit: with the defaults, 128 of the smallest windows.
    public var windowReserve: Int { min(max(inUseLimit / 8, 2 * GrowingBody.smallestWindow), inUseLimit / 2) }

    /// The bytes up to which bodies in use, bodies in windows included, may displace resting bytes: however small the
    /// share, at least the bytes that two windows need to go on.
    public var windowLimit: Int {
        min(max(inUseLimit + windowReserve, min(2 * GrowingBody.smallestWindow, memory / 4)), memory)
    }

    /// `maxObjectSize`, or less if `memory` is small.
    public var objectLimit: Int { min(maxObjectSize, inUseLimit, windowLimit - windowReserve) }
}
