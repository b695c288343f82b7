/// The outcome of an attempt to store a response.
public enum StoreOutcome: Sendable, CaseIterable {
    case stored
    /// The key was invalidated or purged since the fetch began, or a more recent response is stored.
    case outdated
    /// The response is larger than `StorageSettings.objectLimit` (`StoredResponse.objectSize`).
    case tooLarge
    /// The budget is spent, and no entry is left that could be evicted.
    case noRoom
    /// The body is not complete, or its beginning is gone.
    case incomplete
    /// The response to be freshened is no longer stored.
    case gone
}
