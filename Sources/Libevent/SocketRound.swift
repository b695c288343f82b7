import Bytes

/// Sockets that have been read and are served together: first all are read, as the loop finds them ready, then all are
/// served, then all that is owed to them is written.
///
/// A read or a write is more of the kernel's code than a core's instruction cache holds, or nearly. So whatever runs
/// after one begins by fetching its own code again. In a round that happens once.
///
/// ```
/// recv recv recv …              each socket's `readable`, which calls `add`
/// roundCame roundCame …         no system calls, as far as those can wait
/// roundEnds roundEnds …         send send …
/// ```
///
/// A round is served when `most` sockets have gathered, and at the latest when all ready ones have been read, before any
/// job of the loop's and the end of the iteration. On the loop's thread.
@safe open class SocketRound: IterationReader {
    /// The first of a round waits for so many others to be read and served: some 25 µs where each asks for one hit. A
    /// client that has sent hundreds of requests is served with all of them, as it was without rounds.
    public static let most = 16

    private let loop: EventLoop
    /// Each is retained once, by `add`, and released once its round has ended: in between it is used without counting
    /// references, of which an array of sockets would take six atomic instructions a member, not two.
    private let members = unsafe Exclusive<[Unmanaged<Socket>]>([])
    /// Whether the loop will tell when its sockets have been read.
    private var isAnnounced = false
    /// While it is served, those who are added wait for the next one.
    private var isUnderWay = false

    /// An empty round of sockets on `loop`.
    public init(on loop: EventLoop) { self.loop = loop }

    deinit { unsafe members.use { unsafe Self.forEach(of: $0) { unsafe $0.release() } } }

    // MARK: For subclasses

    /// So many sockets will be served.
    open func begins(with count: Int) {}

    /// They have been.
    open func ends() {}

    // MARK: Members

    /// `socket` has been read, and waits for `roundCame`. It may be closed by then; it lives.
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

    /// From the loop: serves those who have been read.
    public final func socketsWereRead() {
        isAnnounced = false
        serve()
    }

    /// Serves those who have been read, now: for whoever must not find any of them half done.
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

    // Not `for unsafe … in`, which swift-format 6.3 breaks.
    @inline(__always)
    private static func forEach(of members: [Unmanaged<Socket>], _ body: (Unmanaged<Socket>) -> Void) {
        for index in unsafe members.indices { unsafe body(members[index]) }
    }
}
