import Synchronization

/// An event of an origin's servers that is counted.
package enum ServerEvent: Int, Sendable, CaseIterable {
    /// A place was ejected. A probe that fails prolongs its ejection, and is none.
    case ejection
    /// A check found the server in health, or not.
    case checkSuccess, checkFailure
    /// The budget allowed no retry.
    case refusedRetry
    /// A request found no server in use.
    case noServer
}

/// How often each event came since the program started. All loops count; a reload that changes the origin keeps the
/// counts.
package final class ServerEventCounts: Sendable {
    private let counts: InlineArray<5, Atomic<UInt64>> = .init { _ in Atomic<UInt64>(0) }

    func add(_ event: ServerEvent) { counts[event.rawValue].wrappingAdd(1, ordering: .relaxed) }

    /// The count at the time of reading.
    package subscript(event: ServerEvent) -> UInt64 { counts[event.rawValue].load(ordering: .relaxed) }
}
