import Bytes
import Libevent
import Storage
import Telemetry

/// Clients that have sent something and are served together: all are read, then all answered, then all written to.
///
/// A write to a socket is more code of the kernel's than a core's instruction cache holds. So whatever runs after one
/// begins by fetching its own code again, and that was much of what a hit took here. In a round the clients' requests
/// are parsed, looked up and answered one right after another, without a system call in between.
///
/// ```
/// recv recv recv …      `ClientConnection.readable`, as the loop finds sockets ready
/// answer answer …       `ClientConnection.serveRound`: plain hits into `buffer`, anything else begins as always
/// send send send …      the hits
/// ```
///
/// A round is served when `most` have gathered, and at the latest when all ready sockets have been read, before any job
/// of the loop's.
///
/// Held back in `buffer` are also the hits of one client that has sent more requests behind (pipelining), which then go
/// out in one write. Each client has one stretch of it, its share (`ResponseOutput.heldHits`), which is the last one for
/// as long as its requests are being taken. What is held back counts as sent in the log: the kernel takes it in the same
/// iteration, unless the client has gone or takes nothing.
///
/// One per worker, on its loop.
final class ServingRound: IterationReader {
    /// The first of a round waits for the others to be read and answered: for hits some 25 µs.
    static let most = 16
    /// Bytes of hits that are held back: of all clients, or of one that has sent more.
    private static let mostHeld = 24 << 10

    /// Where the responses of plain hits are put together: what is held back, and the one at work.
    let buffer = ByteBuffer(capacity: 64 << 10)
    private let loop: EventLoop
    private let metrics: LoopMetrics
    /// Who has been read, and is to be served.
    private let clients = Exclusive<[ClientConnection]>([])
    /// Whether the loop will tell when its sockets have been read.
    private var isAnnounced = false
    /// Whether hits wait for those of other clients.
    private var isShared = false

    init(on loop: EventLoop, metrics: LoopMetrics) {
        self.loop = loop
        self.metrics = metrics
    }

    /// `client`, which is between requests, has been read. It may have ended when its round comes.
    func add(_ client: ClientConnection) {
        let count = clients.use { clients in
            clients.append(client)
            return clients.count
        }
        if count == Self.most { return serve() }
        guard !isAnnounced else { return }
        isAnnounced = true
        loop.afterReading(self)
    }

    func socketsWereRead() {
        isAnnounced = false
        serve()
    }

    /// Serves those who have been read, now: before somebody looks for clients that are idle.
    func serve() {
        guard clients.use({ !$0.isEmpty }) else { return }
        var due: [ClientConnection] = []
        clients.use { swap(&due, &$0) }
        serve(due.span)
        due.removeAll(keepingCapacity: true)
        // Reuse the array's storage.
        clients.use { if $0.isEmpty { swap(&due, &$0) } }
    }

    // As a span its members are lent, not copied out of an array, which would retain each.
    private func serve(_ members: Span<ClientConnection>) {
        isShared = members.count > 1
        for index in members.indices { members[index].serveRound() }
        guard isShared else { return }
        isShared = false
        for index in members.indices { sendShare(of: members[index]) }
        buffer.removeAll()
    }

    // MARK: Hits

    /// Whether a hit that ends `buffer` is held back.
    /// - Parameters:
    ///   - start: where the hit begins.
    ///   - hasMore: whether its client has sent something behind the request.
    func holds(_ client: ClientConnection, from start: Int, hasMore: Bool) -> Bool {
        let end = buffer.count
        guard (isShared && end < Self.mostHeld) || (hasMore && end - client.startOfHits(or: start) < Self.mostHeld)
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
