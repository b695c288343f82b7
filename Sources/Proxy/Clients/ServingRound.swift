import Bytes
import Libevent
import Storage
import Telemetry

/// One round serves all clients that the loop found readable: their requests are answered one after another, then their
/// plain hits are written.
///
/// ```
/// recv recv recv …      `ClientConnection.readable`, as the loop finds sockets ready
/// answer answer …       plain hits into `buffer`, anything else begins as always
/// send send send …      the hits
/// ```
///
/// `buffer` also keeps the hits of one client that pipelines requests, so that they are sent in one write. Each client
/// has one range of `buffer`, its share (`ResponseOutput.heldHits`); while a client's requests are being served, its
/// share is the last. Pending hits count as sent in the log: the kernel takes them in the same iteration, unless the
/// client has gone or takes no bytes (docs/observability.md).
///
/// One per worker, on its loop.
final class ServingRound: SocketRound {
    /// The most bytes pending in `buffer` for all clients, and for one client that pipelines. Beyond it the next hit is
    /// sent at once, with the pending hits of its client: so `buffer` holds at most twice as much, and one response.
    private static let mostHeld = 24 << 10

    /// The responses of plain hits: the pending ones, and the one being written.
    let buffer = ByteBuffer(capacity: 64 << 10)
    private let metrics: LoopMetrics
    /// Whether the round has several clients, so that hits wait for its end.
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

    /// Decides whether the hit at the end of `buffer` stays pending, and if so adds it to the client's share.
    /// - Parameters:
    ///   - start: where the hit begins in `buffer`.
    ///   - hasMore: whether bytes of the client follow the request.
    func holds(_ client: ClientConnection, from start: Int, hasMore: Bool) -> Bool {
        let end = buffer.count
        guard
            (client.isInRound && end < Self.mostHeld)
                || (hasMore && end - client.startOfHits(or: start) < Self.mostHeld)
        else { return false }
        client.hold(from: start, to: end)
        return true
    }

    /// Sends the client's share, if it has one. The client is still `reading` afterwards only if the kernel has taken
    /// all of it.
    func sendShare(of client: ClientConnection) {
        guard let share = client.takeHeldHits() else { return }
        let buffer = buffer
        _ = noteSent(
            client.write(buffer.span.extracting(share)), of: share, to: client, isLast: false, keepsAlive: true)
        forget(share)
    }

    /// A share was sent, or copied elsewhere. If it is the last in the buffer, its room is freed.
    func forget(_ share: Range<Int>) {
        if share.upperBound == buffer.count { buffer.truncate(to: share.lowerBound) }
    }

    /// How far a response got.
    enum Progress {
        case whole
        /// The rest is sent as the client takes it.
        case begun
        case failed
    }

    /// Accounts for a write to `client`.
    /// - Parameters:
    ///   - share: the written range of `buffer`.
    ///   - body: the body written behind `share`; `stored` is its response.
    ///   - isLast: the client sends no more requests.
    ///   - mayPersist: whether the connection may persist after this response.
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
