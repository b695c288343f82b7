/// How an attempt to store ended.
public enum StoreOutcome: Sendable, CaseIterable {
    case stored
    /// The key was invalidated or purged since the fetch began, or something more recent is stored.
    case outdated
    /// Larger than `StorageSettings.objectLimit` (`StoredResponse.objectSize`).
    case tooLarge
    /// The budget is spent and nothing is left to evict.
    case noRoom
    /// The body is not complete, or its beginning is gone.
    case incomplete
    /// The response to be freshened is no longer stored.
    case gone
}
