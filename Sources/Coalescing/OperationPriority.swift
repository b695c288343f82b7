/// Which operation gets the next free slot. Within one priority it is first come, first served. An operation has the
/// highest priority that anybody asked for.
public enum OperationPriority: UInt8, Sendable, Comparable, CaseIterable {
    /// Nobody waits for it: a background refresh.
    case background
    case low
    case normal
    case high

    @inlinable
    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}
