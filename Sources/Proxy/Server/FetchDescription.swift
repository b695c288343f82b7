import Bytes
import Coalescing

/// A fetch in flight, for people.
public struct FetchDescription: Sendable {
    /// As in the access log.
    public let number: UInt64
    public let upstream: String
    /// The primary cache key.
    public let key: String
    public let phase: String
    public let waiters: Int

    init(_ operation: FetchOperation, upstream: String) {
        number = operation.number
        self.upstream = upstream
        key = String(operation.key.primary.bytes)
        phase = operation.value == nil ? "\(operation.phase)" : "streaming"
        waiters = operation.clientCount
    }
}
