import Bytes
import Coalescing
import HTTPSemantics
import Routing
import Storage

/// A fetch in flight, described for an operator. A value: made on the control loop, read on any thread.
package struct FetchDescription: Sendable {
    /// The fetch's number, as in the access log.
    package let number: UInt64
    package let upstream: String
    /// The primary cache key.
    package let key: String
    /// `pending`, `ready`, `executing`, `streaming`, `finished` or `cancelled`: see docs/observability.md.
    package let phase: String
    /// Clients that wait for the response, or to which it is being sent.
    package let waiters: Int
    /// When the fetch was made, in nanoseconds of the loops' clock.
    package let made: Int64
    /// Bytes of the response's body that have arrived; `nil` before its head.
    package let received: Int?

    init(_ operation: FetchOperation, upstream: String) {
        number = operation.number
        self.upstream = upstream
        key = String(operation.key.primary.bytes)
        phase = operation.value == nil ? "\(operation.phase)" : "streaming"
        waiters = operation.waiterCount
        made = operation.made
        // Takes the body's lock briefly, as each of its readers does.
        received = operation.value.map { $0.response.looseBody?.length ?? $0.response.bodyLength ?? 0 }
    }
}
