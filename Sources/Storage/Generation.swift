/// The state of a key's invalidations when a fetch began. If an unsafe request or a purge invalidates the key while the
/// fetch is in flight, its response is not stored as if it came afterwards (RFC 9111 §4.4): see
/// `ResponseStore.wasInvalidated`.
///
/// A generation outlives the resources and needs no tombstones: each shard remembers its invalidated keys
/// (`InvalidationLog`), and one counter of the store counts the invalidations of everything.
public struct Generation: Sendable {
    let ofStore: UInt32
    let ofKey: InvalidationMark
}
