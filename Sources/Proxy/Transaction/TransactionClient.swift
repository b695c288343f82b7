import Bytes
import Upstream

/// The operations that a transaction needs of the client's connection, whatever its transport and protocol. The tests'
/// implementation has no socket.
protocol TransactionClient: AnyObject {
    /// Sends a response; the transaction leaves when its last byte is with the kernel.
    /// - Parameter head: lent for the call: bytes that are not sent at once are copied.
    func send(
        _ head: ByteBuffer, _ sources: consuming Delivery.Sources, _ framing: Delivery.Framing, passesTrailers: Bool)
    /// The connections to origins that belong to the client connection. From the first call on, it has such
    /// connections.
    var boundConnections: BoundConnections { get }
    /// Sends a 1xx head as it is.
    func send(interim: ByteSlice)
    /// Resumes the reading of content.
    func resumeContent()
    /// Makes the connection a tunnel to `upstream`; `head` is the 101.
    func tunnel(to upstream: UpstreamConnection, head: ByteBuffer)
    /// Decides whether the connection outlives the response whose head is made now; the head must say so.
    func settlePersistence() -> Bool
}
