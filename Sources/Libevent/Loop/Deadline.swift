/// Names one entry of a `DeadlineWheel`. A stale deadline names no entry, even after its place was used again.
public struct Deadline: Hashable, Sendable {
    let index: UInt32
    let generation: UInt32

    /// The deadline that names no entry.
    public static let none = Deadline(index: 0, generation: 0)
    public var isNone: Bool { generation == 0 }
}
