import Bytes
import Upstream

/// The request that led a fetch, on the same loop. Content, upgrades and all that concerns this request alone pass
/// through it.
protocol FetchLeader: AnyObject {
    /// Whether a fetch that the request waited for before this one brought a response that the request could not have.
    var wasReleased: Bool { get }
    /// The connections to origins that belong to the request's client connection. From the first call on, the client
    /// connection has such connections.
    var boundConnections: BoundConnections { get }
    /// Takes the content that came before the fetch got its slot.
    func takeContent() -> OutgoingContent?
    /// The content that was held back is sent: send more.
    func fetchTakesContent()
    /// Sends an interim response, in the form that goes to the client.
    func send(interim: ByteSlice)
    /// The origin switched protocols; `head` is the 101 in the form that goes to the client, with the bytes that
    /// followed it.
    func fetchUpgraded(to connection: UpstreamConnection, head: ByteBuffer)
    /// The origin confirmed a representation that only this client has: the request gets this answer and leaves; the
    /// others go on waiting.
    func fetchAnswers(_ response: FetchedResponse)
}
