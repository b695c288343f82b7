/// Names one entry of a `DeadlineWheel`. A stale one names nothing, also when its place has been used again.
public struct Deadline: Hashable, Sendable {
    let index: UInt32
    let generation: UInt32

    /// Names nothing.
    public static let none = Deadline(index: 0, generation: 0)
    public var isNone: Bool { generation == 0 }
}
