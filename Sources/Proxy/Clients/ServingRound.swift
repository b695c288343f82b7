import Bytes
import Libevent
import Storage
import Telemetry

/// Clients that have sent something: their requests are answered one right after another, and plain hits go out when
/// all are answered.
///
/// ```
/// recv recv recv …      `ClientConnection.readable`, as the loop finds sockets ready
/// answer answer …       plain hits into `buffer`, anything else begins as always
/// send send send …      the hits
/// ```
///
/// Held back in `buffer` are also the hits of one client that has sent more requests behind (pipelining), which then go
/// out in one write. Each client has one stretch of it, its share (`ResponseOutput.heldHits`), which is the last one for
/// as long as its requests are being taken. What is held back counts as sent in the log: the kernel takes it in the same
/// iteration, unless the client has gone or takes nothing (docs/observability.md).
///
/// One per worker, on its loop.
final class ServingRound: SocketRound {
    /// When so many bytes are held back of all clients, or of one that has sent more, the next hit goes out at once, with
    /// those of its client: so `buffer` has at most twice as much, and a response.
    private static let mostHeld = 24 << 10

    /// Where the responses of plain hits are put together: what is held back, and the one at work.
    let buffer = ByteBuffer(capacity: 64 << 10)
    private let metrics: LoopMetrics
    /// Whether hits wait for those of other clients.
    private(set) var isShared = false

    init(on loop: EventLoop, metrics: LoopMetrics) {
        self.metrics = metrics
        super.init(on: loop)
    }

    override func begins(with count: Int) { isShared = count > 1 }

    override func ends() {
        isShared = false
        buffer.removeAll()
    }

    // MARK: Hits

    /// Whether a hit that ends `buffer` is held back.
    /// - Parameters:
    ///   - start: where the hit begins.
    ///   - hasMore: whether its client has sent something behind the request.
    func holds(_ client: ClientConnection, from start: Int, hasMore: Bool) -> Bool {
        let end = buffer.count
        guard
            (client.isInRound && end < Self.mostHeld)
                || (hasMore && end - client.startOfHits(or: start) < Self.mostHeld)
        else { return false }
        client.hold(from: start, to: end)
        return true
    }

    /// Sends the client's share, if it has one. Afterwards the client is still `reading` only if it has taken that.
    func sendShare(of client: ClientConnection) {
        guard let share = client.takeHeldHits() else { return }
        let buffer = buffer
        _ = noteSent(
            client.write(buffer.span.extracting(share)), of: share, to: client, isLast: false, keepsAlive: true)
        forget(share)
    }

    /// A share was sent, or is kept elsewhere. If it is the last of the buffer, there is room for others in its place.
    func forget(_ share: Range<Int>) {
        if share.upperBound == buffer.count { buffer.truncate(to: share.lowerBound) }
    }

    /// How far a response got.
    enum Progress {
        case whole
        /// The rest goes out as the client takes it.
        case begun
        case failed
    }

    /// Something was written to `client`.
    /// - Parameters:
    ///   - share: what it was of `buffer`.
    ///   - body: what was behind that, and `stored` the response whose body it is.
    ///   - isLast: the client sends nothing more.
    ///   - mayPersist: whether another request may come behind what is answered.
    func noteSent(
        _ result: WriteResult, of share: Range<Int>, _ body: CompleteBodyReader? = nil,
        of stored: StoredResponse? = nil,
        to client: ClientConnection, isLast: Bool, keepsAlive mayPersist: Bool
    ) -> Progress {
        let sent: Int
        switch result {
        case .wrote(let count): sent = count
        case .wouldBlock: sent = 0
        case .failed:
            client.end()
            return .failed
        }
        guard sent < share.count + (body?.remaining ?? 0) else {
            metrics.add(.clientBytesOut, UInt64(sent))
            client.hitSent(isLast: isLast, keepsAlive: mayPersist)
            return .whole
        }
        let (head, buffer) = (ByteBuffer(capacity: share.count), buffer)
        head.append(buffer.span.extracting(share))
        let rest = body ?? CompleteBodyReader(ShortList(), part: 0..<0)
        client.sendRest(head, stored.map { rest.reading($0) } ?? rest, after: sent, keepsAlive: mayPersist)
        return .begun
    }
}
