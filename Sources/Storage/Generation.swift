/// Where the invalidations of a key stood when a fetch began. A response is only stored under the generation its fetch
/// began with, so that what was on its way when an unsafe request or a purge passed is not stored as if it came
/// afterwards (RFC 9111 §4.4).
///
/// One counter for the whole store and 256 in each shard: they outlive the resources, need no tombstones and take a
/// kilobyte a shard. Keys that share a counter are, once in (256 × shards) invalidations, refused for each other's sake:
/// such a response still goes to all who wait for it and is fetched again next time.
public struct Generation: Sendable, Equatable {
    let ofStore: UInt32
    let ofKey: UInt32
}
