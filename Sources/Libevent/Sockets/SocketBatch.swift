public import Bytes

/// Serves sockets together: first all of them are read, as the loop finds them ready, then the bytes of all are
/// processed, then all output is written.
///
/// The kernel's code for a read or a write nearly fills, or exceeds, a core's instruction cache. So the program's code
/// has to be fetched again after each system call. A batch fetches it only once.
///
/// ```
/// recv recv recv …              each socket's `readable`, which calls `add`
/// batchIsReady batchIsReady …         no system calls, as far as those can wait
/// send batchEnded send …        the bytes that each left in `output`
/// ```
///
/// The batch owns the bytes in `output`. A socket appends to it in its turn; the bytes that the socket leaves there are
/// its share, which the batch writes. Code that uses `output` at any other time, or for another socket, removes from its
/// end what it has appended. So during a socket's turn its bytes are the last.
///
/// A batch is served when `most` sockets have gathered, and at the latest when all ready sockets have been read: before
/// any job of the loop and the end of the iteration. On the loop's thread.
@safe public final class SocketBatch: IterationReader {
    /// A batch of this many sockets is served at once. Its first socket waits until the others are read and served:
    /// about 25 µs if each asks for one hit. A client that has sent hundreds of requests is served with all of them, as
    /// without batches.
    public static let most = 16

    /// `add` retains the socket once, and the end of its batch releases it. In between the socket is used without
    /// reference counting; a strong reference would take six atomic instructions instead of two.
    @safe private struct Member {
        let socket: Unmanaged<Socket>
        /// The socket's bytes in `output`.
        var share = 0..<0
    }

    private let loop: EventLoop
    private let members = Exclusive<[Member]>([])
    /// Whether the loop will call `socketsWereRead()`.
    private var isAnnounced = false
    /// Whether the batch is being served. Sockets added meanwhile wait for the next batch.
    private var isUnderWay = false
    /// The bytes that wait to be written, and those that are being written now.
    public let output: ByteBuffer

    /// An empty batch of sockets on `loop`.
    /// - Parameter outputCapacity: bytes; 0 if the sockets leave no output.
    public init(on loop: EventLoop, outputCapacity: Int = 0) {
        self.loop = loop
        output = ByteBuffer(capacity: outputCapacity)
    }

    deinit { members.use { for index in $0.indices { unsafe $0[index].socket.release() } } }

    /// Adds `socket`, which has been read; it waits for `batchIsReady`. It may be closed by then, but stays alive.
    public func add(_ socket: Socket) {
        let count = members.use { members in
            members.append(unsafe Member(socket: .passRetained(socket)))
            return members.count
        }
        if count >= Self.most, !isUnderWay { return serve() }
        guard !isAnnounced else { return }
        isAnnounced = true
        loop.afterReading(self)
    }

    /// Called by the loop: serves the sockets that have been read.
    public func socketsWereRead() {
        isAnnounced = false
        serve()
    }

    /// Serves the sockets that have been read, now: for callers that must not find a half-done request.
    public func serve() {
        guard !isUnderWay, members.use({ !$0.isEmpty }) else { return }
        isUnderWay = true
        defer { isUnderWay = false }
        var due: [Member] = []
        members.use { swap(&due, &$0) }
        let (output, isShared) = (output, due.count > 1)
        let first = output.count
        var start = first
        for index in due.indices {
            unsafe due[index].socket._withUnsafeGuaranteedRef { $0.batchIsReady(isShared: isShared) }
            let end = output.count
            if end > start { due[index].share = start..<end }
            start = end
        }
        for index in due.indices {
            let share = due[index].share
            unsafe due[index].socket._withUnsafeGuaranteedRef { socket in
                guard !share.isEmpty, !socket.isClosed else { return socket.batchEnded() }
                socket.batchEnded(socket.write(output.span.extracting(share)), of: share)
            }
        }
        output.truncate(to: first)
        for index in due.indices { unsafe due[index].socket.release() }
        due.removeAll(keepingCapacity: true)
        // Reuse the array's storage.
        members.use { if $0.isEmpty { swap(&due, &$0) } }
    }
}
