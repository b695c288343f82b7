import Bytes
import Synchronization

/// An event of the shared tier that is counted, once for each fetch that asks it.
package enum TierEvent: Int, Sendable, CaseIterable {
    /// The engine had the response.
    case hit
    /// Another machine was fetching it.
    case joined
    /// This machine fetched it.
    case led
    /// The response is not for several requests.
    case unshareable
    /// The engine gave no answer in time.
    case unanswered
    /// What the engine had was not used: it was purged, or is not for this machine's clients.
    case refused
    /// The response broke off: its leader has gone, or the engine has evicted it.
    case broken
    /// A response was written whole.
    case written
    /// A response was given up: the engine was too slow or full, or the response too large.
    case givenUp

    /// The name in metrics and in `status`.
    package var name: String {
        switch self {
        case .hit: "hit"
        case .joined: "joined"
        case .led: "led"
        case .unshareable: "unshareable"
        case .unanswered: "unanswered"
        case .refused: "refused"
        case .broken: "broken"
        case .written: "written"
        case .givenUp: "given-up"
        }
    }
}

/// How often each event came since the program started, and how many bytes of content went each way. All loops count.
package final class TierCounts: Sendable {
    private let events: InlineArray<9, Atomic<UInt64>> = .init { _ in Atomic<UInt64>(0) }
    private let read = Atomic<UInt64>(0)
    private let sent = Atomic<UInt64>(0)
    private let connections = Atomic<Int>(0)

    func add(_ event: TierEvent) { events[event.rawValue].wrappingAdd(1, ordering: .relaxed) }
    func add(bytesRead count: Int) { read.wrappingAdd(UInt64(count), ordering: .relaxed) }
    func add(bytesWritten count: Int) { sent.wrappingAdd(UInt64(count), ordering: .relaxed) }
    /// A connection to the engine is ready, or has ended.
    func noteConnection(isReady: Bool) { connections.add(isReady ? 1 : -1, ordering: .relaxed) }

    /// The count at the time of reading.
    package subscript(event: TierEvent) -> UInt64 { events[event.rawValue].load(ordering: .relaxed) }
    /// Bytes of content from the engine.
    package var bytesRead: UInt64 { read.load(ordering: .relaxed) }
    /// Bytes of content to the engine.
    package var bytesWritten: UInt64 { sent.load(ordering: .relaxed) }
    /// The connections to the engine that are ready: one of each worker and node, and one for the purges.
    package var connected: Int { connections.load(ordering: .relaxed) }
}
