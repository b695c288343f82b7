/// The outcome of storing a response, or of freshening a stored one.
public enum StoreOutcome: UInt8, Sendable, CaseIterable {
    case stored
    /// The fetch was invalidated or purged since it began, or a more recent response is stored.
    case outdated
    /// Larger than the largest response that may be stored.
    case tooLarge
    /// The memory is full, and no entry is left to evict.
    case noRoom
    /// The body is not complete, or its beginning is gone.
    case incomplete
    /// The response to be freshened is no longer stored.
    case gone

    /// The fixed name, for the metrics.
    public var name: StaticString {
        switch self {
        case .stored: "stored"
        case .outdated: "outdated"
        case .tooLarge: "too-large"
        case .noRoom: "no-room"
        case .incomplete: "incomplete"
        case .gone: "gone"
        }
    }
}
