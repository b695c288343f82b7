/// Where the invalidations stood when a fetch began. What was on its way when an unsafe request or a purge passed over
/// its key is not stored as if it came afterwards (RFC 9111 §4.4): see `ResponseStore.wasInvalidated`.
///
/// A generation outlives the resources and needs no tombstones: what was invalidated is remembered by shard
/// (`InvalidationLog`), that everything was by one count.
public struct Generation: Sendable {
    let ofStore: UInt32
    let ofKey: InvalidationMark
}
