/// Decides which operation gets the next free slot. Within one priority, first come, first served. An operation has the
/// highest priority that any caller asked for.
public enum OperationPriority: UInt8, Sendable, Comparable, CaseIterable {
    /// For work that no caller waits for: a background refresh.
    case background
    case low
    case normal
    case high
    /// For small work that must not wait for other work, such as a check of whether other work can be done at all. It
    /// takes no slot and waits for none, is never refused for lack of room, and its start and end are not counted in
    /// `OperationQueueSnapshot`.
    case immediate

    @inlinable
    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}
