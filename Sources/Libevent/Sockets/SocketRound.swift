import Bytes

/// Serves sockets together: first all of them are read, as the loop finds them ready, then all requests are served,
/// then all output is written.
///
/// The kernel's code for a read or a write nearly fills, or exceeds, a core's instruction cache. So the program's code
/// has to be fetched again after each system call. A round fetches it only once.
///
/// ```
/// recv recv recv …              each socket's `readable`, which calls `add`
/// roundCame roundCame …         no system calls, as far as those can wait
/// roundEnds roundEnds …         send send …
/// ```
///
/// A round is served when `most` sockets have gathered, and at the latest when all ready sockets have been read: before
/// any job of the loop and the end of the iteration. On the loop's thread.
@safe open class SocketRound: IterationReader {
    /// A round of this many sockets is served at once. Its first socket waits until the others are read and served:
    /// about 25 µs if each asks for one hit. A client that has sent hundreds of requests is served with all of them, as
    /// without rounds.
    public static let most = 16

    private let loop: EventLoop
    /// `add` retains each socket once, and the end of its round releases it. In between the sockets are used without
    /// reference counting; an array of strong references would take six atomic instructions a member instead of two.
    private let members = unsafe Exclusive<[Unmanaged<Socket>]>([])
    /// Whether the loop will call `socketsWereRead()`.
    private var isAnnounced = false
    /// Whether the round is being served. Sockets added meanwhile wait for the next round.
    private var isUnderWay = false

    /// An empty round of sockets on `loop`.
    public init(on loop: EventLoop) { self.loop = loop }

    deinit { unsafe members.use { unsafe Self.forEach(of: $0) { unsafe $0.release() } } }

    // MARK: For subclasses

    /// Called before `count` sockets are served.
    open func begins(with count: Int) {}

    /// Called after all of them have been served.
    open func ends() {}

    // MARK: Members

    /// Adds `socket`, which has been read; it waits for `roundCame`. It may be closed by then, but stays alive.
    public final func add(_ socket: Socket) {
        let count = unsafe members.use { members in
            unsafe members.append(Unmanaged.passRetained(socket))
            return unsafe members.count
        }
        if count >= Self.most, !isUnderWay { return serve() }
        guard !isAnnounced else { return }
        isAnnounced = true
        loop.afterReading(self)
    }

    /// Called by the loop: serves the sockets that have been read.
    public final func socketsWereRead() {
        isAnnounced = false
        serve()
    }

    /// Serves the sockets that have been read, now: for callers that must not find a half-done request.
    public final func serve() {
        guard !isUnderWay, unsafe members.use({ unsafe !$0.isEmpty }) else { return }
        isUnderWay = true
        defer { isUnderWay = false }
        var due = unsafe [Unmanaged<Socket>]()
        unsafe members.use { unsafe swap(&due, &$0) }
        begins(with: unsafe due.count)
        unsafe Self.forEach(of: due) { unsafe $0._withUnsafeGuaranteedRef { $0.roundCame() } }
        unsafe Self.forEach(of: due) { unsafe $0._withUnsafeGuaranteedRef { $0.roundEnds() } }
        ends()
        unsafe Self.forEach(of: due) { unsafe $0.release() }
        unsafe due.removeAll(keepingCapacity: true)
        // Reuse the array's storage.
        unsafe members.use { if unsafe $0.isEmpty { unsafe swap(&due, &$0) } }
    }

    // `for unsafe … in` is not used, since swift-format 6.3 breaks it.
    @inline(__always)
    private static func forEach(of members: [Unmanaged<Socket>], _ body: (Unmanaged<Socket>) -> Void) {
        for index in unsafe members.indices { unsafe body(members[index]) }
    }
}
