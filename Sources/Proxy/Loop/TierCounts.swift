package import Bytes
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
    private let replies = Guarded<[TierReplyTimes]>([])

    func add(_ event: TierEvent) { events[event.rawValue].wrappingAdd(1, ordering: .relaxed) }
    func add(bytesRead count: Int) { read.wrappingAdd(UInt64(count), ordering: .relaxed) }
    func add(bytesWritten count: Int) { sent.wrappingAdd(UInt64(count), ordering: .relaxed) }
    /// The times that one loop adds to.
    func replyTimesOfLoop() -> TierReplyTimes {
        let times = TierReplyTimes()
        replies.withLock { $0.append(times) }
        return times
    }

    /// The count at the time of reading.
    package subscript(event: TierEvent) -> UInt64 { events[event.rawValue].load(ordering: .relaxed) }
    /// Bytes of content from the engine.
    package var bytesRead: UInt64 { read.load(ordering: .relaxed) }
    /// Bytes of content to the engine.
    package var bytesWritten: UInt64 { sent.load(ordering: .relaxed) }
    /// How long the engine took to answer what clients waited for, by the clocks of the loops.
    package var replyTimes: DurationCounts {
        replies.withLock { $0 }.reduce(into: DurationCounts()) { $0.add($1.read()) }
    }
}

/// How long the engine took to answer what clients waited for, on one loop, which alone adds.
final class TierReplyTimes: Sendable {
    private let histogram = DurationHistogram()

    func add(nanoseconds: UInt64) { histogram.add(nanoseconds: nanoseconds) }

    func read() -> DurationCounts { histogram.read() }
}
