public import HTTPSemantics
public import Synchronization

/// A closed list of counters: the scrape, the tests and the slots follow from the cases.
public protocol CounterList: Hashable, Sendable, CaseIterable where AllCases == [Self] {
    /// The counter's own slot: its index in `allCases`, below `CounterCells.capacity`.
    var slot: Int { get }
}

/// The counters of one list, as one worker loop keeps them.
///
/// Only that loop adds; any thread reads. With a single writer a plain load and store is enough, so counting costs no
/// locked instruction; readers see each counter whole, but not all counters at one moment.
public struct CounterCells<List: CounterList>: ~Copyable, Sendable {
    /// A multiple of a cache line's eight.
    static var capacity: Int { 112 }

    /// Two loops' counters never share a cache line, nor a pair of lines that the CPU prefetches together (128 bytes),
    /// nor do they share one with the owning object's reference count, which the scraping thread touches.
    private let paddingBefore: InlineArray<16, UInt64> = .init(repeating: 0)
    @usableFromInline let cells: InlineArray<112, Atomic<UInt64>> = .init { _ in Atomic<UInt64>(0) }
    private let paddingAfter: InlineArray<16, UInt64> = .init(repeating: 0)

    /// Adds `amount`. On the owning loop only: a second writer would lose counts.
    @inlinable func add(_ counter: List, _ amount: UInt64) {
        let slot = counter.slot
        cells[slot].store(cells[slot].load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    /// The current values. From any thread.
    func read() -> CounterReadings<List> {
        var values = CounterReadings<List>()
        for slot in cells.indices { values.slots[slot] = cells[slot].load(ordering: .relaxed) }
        return values
    }
}

/// The counters of one list at one moment, of one loop or of several added up.
struct CounterReadings<List: CounterList>: Sendable {
    fileprivate var slots = [UInt64](repeating: 0, count: CounterCells<List>.capacity)

    subscript(counter: List) -> UInt64 { slots[counter.slot] }

    /// Adds another loop's values.
    mutating func add(_ other: Self) {
        for slot in slots.indices { slots[slot] &+= other.slots[slot] }
    }
}

/// The counters that a worker loop keeps for all upstreams together; the others are `UpstreamCounter`s.
public enum Counter: CounterList {
    /// Methods outside `Method.counted` have the slot of `.other`.
    case requests(Method)
    case responses(StatusClass)
    case coalescing(CoalescingEvent)
    case stores(StoreOutcome)

    /// Connections newly opened to origins, exchanges that reused a connection, connections closed.
    case upstreamConnects, upstreamReuses, upstreamCloses
    /// Bytes read from and written to origins, heads and framing included.
    case upstreamBytesIn, upstreamBytesOut
    /// Client connections accepted, closed, and refused because of the limit (refused ones are not counted as opened).
    case clientConnectionsOpened, clientConnectionsClosed, clientConnectionsRefused
    /// Bytes read from and written to clients, heads and framing included.
    case clientBytesIn, clientBytesOut
    /// Requests refused with 400 and the like for their syntax (RFC 9112 §2.2).
    case malformedRequests
    /// Requests refused with 403 and 429, by a route's `allow`, `deny` and `rate-limit`.
    case deniedRequests, limitedRequests
    /// Client connections refused because their client had too many.
    case clientConnectionsLimited
    /// Handshakes of TLS with clients.
    case handshakes(ClientHandshake)
    case handshakeFailures(HandshakeFailure)
    /// Requests that came on streams of HTTP/2, streams reset, and connections ended with an error.
    case http2Streams
    case http2Resets(HTTP2Error)
    case http2Failures(HTTP2Error)
}

extension Counter {
    /// The first slot of each group: the first slot of the group before, plus the number of slots in that group.
    @usableFromInline
    enum Start {
        @inlinable static var responses: Int { 8 }
        @inlinable static var coalescing: Int { responses + 5 }
        @inlinable static var stores: Int { coalescing + 7 }
        @inlinable static var others: Int { stores + 6 }
        @inlinable static var handshakes: Int { others + 14 }
        @inlinable static var handshakeFailures: Int { handshakes + 4 }
        @inlinable static var http2: Int { handshakeFailures + 6 }
    }

    /// Folds to a constant if the case is written out.
    @inlinable public var slot: Int {
        switch self {
        case .requests(let method): method.countedPosition
        case .responses(let status): Start.responses + status.position
        case .coalescing(let event): Start.coalescing + event.position
        case .stores(let result): Start.stores + result.position
        case .upstreamConnects: Start.others
        case .upstreamReuses: Start.others + 1
        case .upstreamCloses: Start.others + 2
        case .upstreamBytesIn: Start.others + 3
        case .upstreamBytesOut: Start.others + 4
        case .clientConnectionsOpened: Start.others + 5
        case .clientConnectionsClosed: Start.others + 6
        case .clientConnectionsRefused: Start.others + 7
        case .clientBytesIn: Start.others + 8
        case .clientBytesOut: Start.others + 9
        case .malformedRequests: Start.others + 10
        case .deniedRequests: Start.others + 11
        case .limitedRequests: Start.others + 12
        case .clientConnectionsLimited: Start.others + 13
        case .handshakes(let handshake): Start.handshakes + handshake.position
        case .handshakeFailures(let failure): Start.handshakeFailures + failure.position
        case .http2Streams: Start.http2
        case .http2Resets(let error): Start.http2 + 1 + error.position
        case .http2Failures(let error): Start.http2 + 31 + error.position
        }
    }
}

extension Counter {
    /// Every counter, in slot order.
    public static var allCases: [Counter] {
        Method.counted.map(Counter.requests)
            + StatusClass.allCases.map(Counter.responses)
            + CoalescingEvent.allCases.map(Counter.coalescing)
            + StoreOutcome.allCases.map(Counter.stores)
            + [
                .upstreamConnects, .upstreamReuses, .upstreamCloses,
                .upstreamBytesIn, .upstreamBytesOut,
                .clientConnectionsOpened, .clientConnectionsClosed, .clientConnectionsRefused,
                .clientBytesIn, .clientBytesOut, .malformedRequests,
                .deniedRequests, .limitedRequests, .clientConnectionsLimited,
            ]
            + ClientHandshake.allCases.map(Counter.handshakes)
            + HandshakeFailure.allCases.map(Counter.handshakeFailures)
            + [.http2Streams] + HTTP2Error.all.map(Counter.http2Resets) + HTTP2Error.all.map(Counter.http2Failures)
    }
}
