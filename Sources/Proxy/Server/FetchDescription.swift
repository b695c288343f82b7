import Bytes
import Coalescing
import HTTPSemantics
import Storage

/// A fetch in flight, for people. A value: made on the control loop, read anywhere.
public struct FetchDescription: Sendable {
    /// The fetch's number, as in the access log.
    public let number: UInt64
    public let upstream: String
    /// The primary cache key.
    public let key: String
    /// `pending`, `ready`, `executing`, `streaming`, `finished` or `cancelled`: see docs/observability.md.
    public let phase: String
    /// Clients that wait for the response, or are being sent it.
    public let waiters: Int
    /// When it was made, in nanoseconds of the loops' clock.
    public let made: Int64
    /// Bytes of the response's body that have come; `nil` before its head.
    public let received: Int?

    init(_ operation: FetchOperation, upstream: String) {
        number = operation.number
        self.upstream = upstream
        key = String(operation.key.primary.bytes)
        phase = operation.value == nil ? "\(operation.phase)" : "streaming"
        waiters = operation.clientCount
        made = operation.made
        // Takes the body's lock for a moment, as each of its readers does.
        received = operation.value.map { $0.response.looseBody?.length ?? $0.response.bodyLength ?? 0 }
    }
}
