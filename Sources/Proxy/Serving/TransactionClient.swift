import Bytes
import Upstream

/// What a transaction needs of the client's connection, whatever its transport and protocol. That of the tests has no
/// socket.
protocol TransactionClient: AnyObject {
    /// Sends a response; the transaction leaves when its last byte is with the kernel.
    /// - Parameter head: lent for the call: what does not go out at once is copied.
    func send(
        _ head: ByteBuffer, _ sources: consuming Delivery.Sources, _ framing: Delivery.Framing, passesTrailers: Bool)
    /// The connections to origins that are its own: from the first call on it has some.
    var boundConnections: BoundConnections { get }
    /// Sends a 1xx head as it is.
    func send(interim: ByteSlice)
    /// Lets content be read again.
    func resumeContent()
    /// Makes the connection a tunnel to `upstream`; `head` is the 101.
    func tunnel(to upstream: UpstreamConnection, head: ByteBuffer)
    /// Decides whether the connection outlives the response whose head is made now, which must say so.
    func settlePersistence() -> Bool
}
