import CLibevent
import Glibc

/// Accepts connections on one address, on its loop. Dropping the listener closes it.
///
/// When descriptors run out, the listener pauses and then tries again; meanwhile the clients wait in the kernel's
/// queue. (A spare descriptor for accepting and rejecting a client would be needed on every loop, and two loops would
/// take it from each other. A limit on connections below the descriptor limit answers 503 before descriptors run out.)
///
/// ```
/// new ─start→ accepting ─pause, or descriptors run out→ paused ─resume, or a while later→ accepting
/// any ─leave→ leaving ─its queue is empty→ closed
/// any ─close→ closed
/// ```
@safe public final class Listener {
    /// Called on the listener's loop for every connection; the callee owns the descriptor.
    public typealias Accept = (_ connection: consuming Descriptor, _ peer: SocketAddress) -> Void

    /// The listener's settings.
    public struct Settings: Sendable {
        /// The length of the kernel's queue of connections; at most `net.core.somaxconn`, 4096 by default.
        public var backlog: Int32 = 4096
        /// SO_REUSEPORT: each loop has its own listener on the address, and the kernel spreads connections over them.
        public var sharesPort = false
        /// Pause when descriptors run out, in nanoseconds.
        public var retryDelay: Int64 = 100_000_000
        /// The shortest time between two reports of failures, in nanoseconds.
        public var reportInterval: Int64 = 1_000_000_000
        /// Permissions of a unix socket's path; `nil` leaves them to the umask.
        public var pathMode: UInt32?

        public init() {}
    }

    /// The number of connections accepted and handled before the loop's other work gets its turn.
    private static let acceptsPerWakeUp = 64

    /// The bound address, with the port that the kernel chose if port 0 was asked for.
    public let localAddress: SocketAddress
    public let loop: EventLoop
    private let settings: Settings
    private let accept: Accept
    private let report: (SystemError) -> Void

    /// -1 once closed.
    private var descriptor: Int32
    /// `nil` once closed.
    private var socket: ListeningSocket?
    private var watch: Watch?
    private var retry: Timer?
    private var lastReport: Int64?
    /// Set while leaving.
    private var whenLeft: (() -> Void)?

    /// Listens on `address` and accepts from the next iteration on.
    /// - Parameters:
    ///   - onFailure: called when accepting fails for lack of descriptors or memory, at most once per `reportInterval`.
    ///   - accept: gets each connection, non-blocking; the connection is closed unless `accept` keeps it.
    /// - Throws: if another socket listens there without sharing, or this machine lacks the address or may not use it
    ///   (`ListenError.reason`).
    public convenience init(
        _ address: SocketAddress, on loop: EventLoop, settings: Settings = Settings(),
        onFailure: @escaping (SystemError) -> Void = { _ in }, accept: @escaping Accept
    ) throws(ListenError) {
        try self.init(
            ListeningSocket(address, settings), on: loop, settings: settings, onFailure: onFailure, accept: accept)
    }

    /// Accepts on a socket that already listens, beside other listeners if there are any.
    /// - Throws: if memory is short.
    public convenience init(
        _ socket: ListeningSocket, on loop: EventLoop, settings: Settings = Settings(),
        onFailure: @escaping (SystemError) -> Void = { _ in }, accept: @escaping Accept
    ) throws(ListenError) {
        self.init(of: socket, on: loop, settings: settings, onFailure: onFailure, accept: accept)
        try start()
    }

    /// As above, but accepts nothing before `start`, and the socket may begin to listen later still.
    public init(
        of socket: ListeningSocket, on loop: EventLoop, settings: Settings = Settings(),
        onFailure: @escaping (SystemError) -> Void = { _ in }, accept: @escaping Accept
    ) {
        localAddress = socket.address
        self.loop = loop
        self.settings = settings
        self.accept = accept
        report = onFailure
        descriptor = socket.descriptor.rawValue
        self.socket = socket
    }

    /// Accepts connections from the next iteration on.
    /// - Throws: if memory is short. `leave` accepts even then.
    public func start() throws(ListenError) {
        do throws(SystemError) { try startWatching() } catch { throw ListenError(address: localAddress, cause: error) }
    }

    deinit { close() }

    /// Tests whether `address` can be listened on, without sharing the port. So the test notices another program that
    /// shares its port there, which a listener with `sharesPort` would silently join. Not for Unix sockets.
    /// - Throws: if another socket listens there, or this machine lacks the address or may not use it
    ///   (`ListenError.reason`).
    public static func probe(_ address: SocketAddress) throws(ListenError) {
        var settings = Settings()
        settings.sharesPort = false
        do throws(SystemError) {
            // Binding is not enough: a port that is only bound can be bound again.
            let descriptor = try ListeningSocket.bind(address, settings)
            guard Glibc.listen(descriptor.rawValue, 1) == 0 else { throw .last(.listen) }
        } catch {
            throw ListenError(address: address, cause: error)
        }
    }

    /// Accepts no more; the socket is closed if this was its last owner (`ListeningSocket`). May be called again.
    public func close() {
        guard descriptor >= 0 else { return }
        stopWatching()
        descriptor = -1
        socket = nil
    }

    /// Accepts no connections until `resume`.
    public func pause() { stopWatching() }

    /// Accepts again.
    public func resume() { if descriptor >= 0, watch == nil { watchOrRetry() } }

    private func startWatching() throws(SystemError) {
        watch = try unsafe Watch(loop.base, descriptor, EV_READ | EV_PERSIST, context: context(self)) { _, _, context in
            unsafe watcher(context, as: Listener.self)?.acceptBatch()
        }
    }

    private func stopWatching() {
        watch = nil
        retry?.cancel()
        retry = nil
    }

    private func watchOrRetry() {
        do throws(SystemError) { try startWatching() } catch { retryLater(error) }
    }

    /// From now on the kernel drops new connections (`ListeningSocket.dropNewConnections`); those that are being made
    /// come about.
    public func dropNewConnections() { socket?.dropNewConnections() }

    /// Accepts the connections in the kernel's queue, which closing alone would reset, and closes. That takes longer if
    /// descriptors are short. The queue of a socket that the service manager keeps is left to the next program that
    /// accepts on it.
    /// - Parameter completion: called once, perhaps at once.
    public func leave(_ completion: @escaping () -> Void) {
        stopWatching()
        whenLeft = completion
        acceptRest()
    }

    private func acceptRest() {
        retry = nil
        if socket?.isKept == false {
            for _ in 0..<settings.backlog where descriptor >= 0 { guard acceptNext() else { break } }
        }
        // Otherwise no descriptor was free.
        guard retry == nil else { return }
        close()
        whenLeft.take()?()
    }

    private func acceptBatch() {
        // The callback may have closed the listener.
        for _ in 0..<Self.acceptsPerWakeUp { guard watch != nil, acceptNext() else { return } }
    }

    /// - Returns: whether there may be another connection.
    private func acceptNext() -> Bool {
        var memory = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let number = unsafe withUnsafeMutableBytes(of: &memory) { bytes in
            unsafe coalesced_accept(descriptor, bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
        }
        guard number >= 0 else {
            switch errno {
            case EAGAIN, EWOULDBLOCK: return false
            // The socket does not listen yet.
            case EINVAL: return false
            case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                if loop.freeDescriptors() { return true }
                retryLater(.last(.accept))
                return false
            // The error concerns only that one connection, which is gone (accept(2)).
            default: return true
            }
        }
        let connection = Descriptor(adopting: number)
        accept(connection, SocketAddress(&memory, length: length) ?? .unix(path: ""))
        return true
    }

    private func tryAgain() {
        if whenLeft == nil { watchOrRetry() } else { acceptRest() }
    }

    private func retryLater(_ error: SystemError) {
        stopWatching()
        retry = loop.schedule(after: settings.retryDelay) { [weak self] in self?.tryAgain() }
        if let lastReport, loop.now - lastReport < settings.reportInterval { return }
        lastReport = loop.now
        report(error)
    }
}
