import CLibevent
import Glibc

/// Accepts connections on one address, on its loop. Dropping the listener closes it.
///
/// When descriptors run out, the listener pauses and then tries again; meanwhile the clients wait in the kernel's
/// queue. (A spare descriptor for accepting and rejecting a client would be needed on every loop, and two loops would
/// take it from each other. A limit on connections below the descriptor limit answers 503 before descriptors run out.)
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
    private var watch: Watch?
    private var retry: Timer?
    private var lastReport: Int64?
    /// The shared socket, if the listener accepts on a Unix socket's path; `nil` once closed.
    private var unixListener: UnixListener?
    /// Whether the service manager keeps the socket open for the next program that accepts on it.
    private var isInherited = false

    /// Listens on `address` and accepts from the next iteration on.
    /// - Parameters:
    ///   - inherited: sockets that already listen; one of them may listen on `address`.
    ///   - onFailure: called when accepting fails for lack of descriptors or memory, at most once per `reportInterval`.
    ///   - accept: gets each connection, non-blocking; the connection is closed unless `accept` keeps it.
    /// - Throws: if another socket listens there without sharing, or this machine lacks the address or may not use it
    ///   (`ListenError.reason`).
    public convenience init(
        _ address: SocketAddress, from inherited: [InheritedListener] = [], on loop: EventLoop,
        settings: Settings = Settings(),
        onFailure: @escaping (SystemError) -> Void = { _ in }, accept: @escaping Accept
    ) throws(ListenError) {
        let target: ListenTarget
        if let listener = inherited.listening(at: address) {
            target = .inherited(listener)
        } else if case .unix(let path) = address {
            target = .path(try UnixListener(path, settings), address)
        } else {
            target = .port(address)
        }
        try self.init(target, on: loop, settings: settings, onFailure: onFailure, accept: accept)
    }

    /// Listens at `target`, on one of several loops that accept there: `settings` must share the port.
    /// - Throws: as above.
    public convenience init(
        _ target: ListenTarget, on loop: EventLoop, settings: Settings = Settings(),
        onFailure: @escaping (SystemError) -> Void = { _ in }, accept: @escaping Accept
    ) throws(ListenError) {
        do throws(SystemError) {
            switch target {
            case .port(let address):
                let descriptor = try Self.bind(address, settings)
                guard Glibc.listen(descriptor.rawValue, settings.backlog) == 0 else { throw .last(.listen) }
                try self.init(adopting: descriptor, on: loop, settings: settings, onFailure: onFailure, accept: accept)
            case .path(let path, _):
                try self.init(
                    adopting: path.duplicate(), on: loop, settings: settings, onFailure: onFailure, accept: accept)
                unixListener = path
            case .inherited(let listener):
                try self.init(
                    adopting: listener.duplicate(), on: loop, settings: settings, onFailure: onFailure, accept: accept)
                isInherited = true
            }
        } catch {
            throw ListenError(address: target.address, cause: error)
        }
    }

    /// Accepts on a socket that already listens; the socket must be non-blocking.
    /// - Throws: if the descriptor is not a socket, or memory is short. The descriptor is then closed.
    public init(
        adopting descriptor: consuming Descriptor, on loop: EventLoop, settings: Settings = Settings(),
        onFailure: @escaping (SystemError) -> Void = { _ in }, accept: @escaping Accept
    ) throws(SystemError) {
        localAddress = try unsafe SocketAddress.asking(.getsockname, descriptor.rawValue) {
            unsafe getsockname($0, $1, $2)
        }
        self.loop = loop
        self.settings = settings
        self.accept = accept
        report = onFailure
        self.descriptor = descriptor.take()
        try startWatching()
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
            let descriptor = try bind(address, settings)
            guard Glibc.listen(descriptor.rawValue, 1) == 0 else { throw .last(.listen) }
        } catch {
            throw ListenError(address: address, cause: error)
        }
    }

    /// Closes the listener; the last listener of a Unix socket removes its path. Queued connections are reset. May be
    /// called again.
    public func close() {
        guard descriptor >= 0 else { return }
        stopWatching()
        _ = Glibc.close(descriptor)
        descriptor = -1
        unixListener = nil
    }

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

    /// Accepts all connections in the kernel's queue. Call this before `close`, which would reset them. The queue of an
    /// inherited socket is left to the next program that accepts on it.
    public func acceptWaiting() {
        if isInherited { return }
        for _ in 0..<settings.backlog { guard acceptNext() else { return } }
    }

    private func acceptBatch() {
        for _ in 0..<Self.acceptsPerWakeUp { guard acceptNext() else { return } }
    }

    /// - Returns: whether there may be another connection.
    private func acceptNext() -> Bool {
        // The callback may have closed the listener.
        guard watch != nil else { return false }
        var memory = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let number = unsafe withUnsafeMutableBytes(of: &memory) { bytes in
            unsafe coalesced_accept(descriptor, bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
        }
        guard number >= 0 else {
            switch errno {
            case EAGAIN, EWOULDBLOCK: return false
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

    private func retryLater(_ error: SystemError) {
        stopWatching()
        retry = loop.schedule(after: settings.retryDelay) { [weak self] in self?.watchOrRetry() }
        if let lastReport, loop.now - lastReport < settings.reportInterval { return }
        lastReport = loop.now
        report(error)
    }
}

// MARK: Binding

extension Listener {
    private static func bind(_ address: SocketAddress, _ settings: Settings) throws(SystemError) -> Descriptor {
        let descriptor = try Descriptor.stream(for: address)
        // Connections in TIME_WAIT must not keep a restarted program from its port.
        try descriptor.setOption(SOL_SOCKET, SO_REUSEADDR, 1)
        if settings.sharesPort { try descriptor.setOption(SOL_SOCKET, SO_REUSEPORT, 1) }
        // `[::]` must not take IPv4 as well, so that `0.0.0.0` can be listened on beside it.
        if case .ipv6 = address { try descriptor.setOption(Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1) }
        // Accepted connections inherit the option.
        try descriptor.setOption(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        guard descriptor.bind(to: address) else { throw .last(.bind) }
        return descriptor
    }
}
