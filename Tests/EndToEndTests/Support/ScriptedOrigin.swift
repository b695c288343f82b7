import Glibc
import Synchronization

/// An HTTP/1.1 origin that does exactly what a test says, byte for byte, on one thread for all its connections, and
/// keeps what it was asked. State is under one lock: the test looks in while the thread works.
final class ScriptedOrigin: Peer, Sendable {
    typealias Handler = @Sendable (Received) -> [Step]

    private let state: Mutex<State>
    private let waker: Waker
    let endpoint: Endpoint

    /// 0 at a path.
    var port: UInt16 { endpoint.port }
    /// As the configuration of the program has it.
    var url: String {
        if case .unix(let path) = endpoint { "unix:\(path)" } else { "\(scheme)://\(host)" }
    }

    /// - Parameter last: the last byte of its address, 127.0.0.1 by default; `url` and clients of the test know that
    ///   one only.
    convenience init(port: UInt16 = 0, last: UInt8 = 1) throws {
        let (listener, port) = try Socket.listen(port: port, last: last)
        self.init(listener, at: Transport.current.isSecureToOrigins ? .tls(port) : .tcp(port))
    }

    /// An origin at a Unix socket, in place of what is at its path; that stays when it goes down.
    convenience init(path: String) throws {
        _ = unsafe unlink(path)
        self.init(try Socket.listen(at: path), at: .unix(path))
    }

    private init(_ listener: Int32, at endpoint: Endpoint) {
        let isSecured = if case .tls = endpoint { true } else { false }
        let initial = State(listener: listener, isSecured: isSecured)
        self.endpoint = endpoint
        waker = initial.table.waker
        state = Mutex(initial)
        System.startThread { [self] in run() }
    }

    // MARK: - What the test says
    // Handlers run on the origin's thread, under its lock: they answer from the request alone, never ask the origin.

    /// What to do for requests of that path (without query), from the next one on. `"*"` is every other path.
    func on(_ path: String, _ handler: @escaping Handler) {
        state.withLock { $0.handlers[path] = handler }
    }

    /// From now on closes connections on which no request has come for so long after the last response.
    func closeIdleConnections(after time: Duration?) {
        state.withLock { $0.idleTime = time }
        settle()
    }

    /// No longer listens and resets what is open: the origin is down. Its port refuses from now on, and is nobody
    /// else's, unless another origin is made there: tests that run beside this one would get it, and answer.
    func goDown() {
        state.withLock { $0.goDown() }
        settle()
        if port != 0 { state.withLock { $0.reserve(port) } }
    }

    /// Ends every connection on which no request is under way.
    func closeIdleConnections() {
        state.withLock { $0.closeIdle() }
        settle()
    }

    /// A socket that is being polled is closed when the poll ends: waits for that.
    private func settle() {
        let round = state.withLock { $0.round }
        waker.wake()
        while state.withLock({ $0.round == round && !$0.isStopped }) { System.nap(.microseconds(100)) }
    }

    /// Ends the thread. The origin is of no use afterwards.
    func stop() {
        state.withLock { state in
            state.goDown()
            state.release()
            state.isStopped = true
        }
        waker.wake()
    }

    // MARK: - What the test sees

    /// The requests for a path so far, in the order in which they came.
    func requests(_ path: String) -> [Received] {
        state.withLock { $0.received[path] }
    }

    func count(_ path: String) -> Int { requests(path).count }
    /// Requests for any path.
    var total: Int { state.withLock { $0.received.count } }
    var openConnections: Int { state.withLock { $0.connections.count } }
    var acceptedConnections: Int { state.withLock { $0.accepted } }

    // MARK: -

    private func run() {
        var scratch = [UInt8](repeating: 0, count: 65536)
        while true {
            let (entries, deadline, isStopped) = state.withLock { ($0.table.entries, $0.nextDeadline, $0.isStopped) }
            if isStopped { return }
            let slots = PollTable.wait(on: entries, until: deadline)
            let waker = waker
            state.withLock { $0.work(slots, scratch: &scratch) { waker.wake() } }
        }
    }
}
