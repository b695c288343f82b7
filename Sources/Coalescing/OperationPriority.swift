/// Decides which operation gets the next free slot. Within one priority, first come, first served. An operation has the
/// highest priority that any caller asked for.
public enum OperationPriority: UInt8, Sendable, Comparable, CaseIterable {
    /// For work that no caller waits for: a background refresh.
    case background
    case low
    case normal
    case high

    @inlinable
    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}
