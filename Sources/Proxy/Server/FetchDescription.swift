import Bytes
import Coalescing
import HTTPSemantics

/// A fetch in flight, for people. A value: made on the control loop, read anywhere.
public struct FetchDescription: Sendable {
    /// As in the access log.
    public let number: UInt64
    public let upstream: String
    /// The primary cache key.
    public let key: String
    /// `pending`, `ready`, `executing`, `streaming`, `finished` or `cancelled`: see docs/observability.md.
    public let phase: String
    /// Clients that wait for the response, or are being sent it.
    public let waiters: Int

    init(_ operation: FetchOperation, upstream: String) {
        number = operation.number
        self.upstream = upstream
        key = String(operation.key.primary.bytes)
        phase = operation.value == nil ? "\(operation.phase)" : "streaming"
        waiters = operation.clientCount
    }
}
