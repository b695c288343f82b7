import CLibevent
import Glibc

/// One non-blocking stream socket on a loop. Subclasses say what happens when it can be read or written.
///
/// The owner keeps the object; dropping it closes it. All on the loop's thread. Callbacks come from the loop, never
/// from inside a call made here, and none comes after `close`. Closing inside a callback is fine: the object
/// lives until the callback returns. A watch costs memory only while it is armed.
@safe open class Socket: DeadlineTarget {
    /// The loop on which all methods are called, and which calls its own.
    public let loop: EventLoop
    /// -1 once closed.
    var descriptor: Int32
    private var isConnecting = false
    /// See `boundSendQueue`.
    var sendQueueIsBounded = false
    // Used at every read and write. Without the run-time exclusivity check: making and dropping a watch calls only
    // libevent, which does not call back from there.
    @exclusivity(unchecked) private var readWatch: Watch?
    @exclusivity(unchecked) private var writeWatch: Watch?
    /// See `watchForDeparture`. libevent watches one descriptor for edges or for levels, not for both.
    @exclusivity(unchecked) private var departureWatch: Watch?

    /// Takes over a connected socket, as a `Listener` gives it.
    public init(adopting descriptor: consuming Descriptor, on loop: EventLoop) {
        self.loop = loop
        self.descriptor = descriptor.take()
        loop.noteOpened()
        super.init()
    }

    /// Begins to connect to `address`; `connected` reports the outcome.
    /// - Throws: if it fails at once, for lack of a route or a descriptor.
    public init(connectingTo address: SocketAddress, on loop: EventLoop) throws(SystemError) {
        let descriptor = try Self.descriptor(for: address, on: loop)
        if case .unix = address {} else { try descriptor.setOption(Int32(IPPROTO_TCP), TCP_NODELAY, 1) }
        let result = unsafe address.withMemory { memory, length in
            unsafe Glibc.connect(descriptor.rawValue, memory, length)
        }
        // An interrupted connect continues by itself, like one in progress.
        guard result == 0 || errno == EINPROGRESS || errno == EINTR else { throw .last(.connect) }
        self.loop = loop
        self.descriptor = descriptor.take()
        loop.noteOpened()
        super.init()
        isConnecting = true
        armWrite()
    }

    private static func descriptor(for address: SocketAddress, on loop: EventLoop) throws(SystemError) -> Descriptor {
        do throws(SystemError) {
            return try Descriptor.stream(for: address)
        } catch {
            guard error.isShortageHere, loop.freeDescriptors() else { throw error }
            return try Descriptor.stream(for: address)
        }
    }

    deinit { releaseDescriptor() }

    /// Whether the descriptor is given back.
    public final var isClosed: Bool { descriptor < 0 }

    // MARK: For subclasses

    /// There is something to read, or the end. Comes again until it is read or reading is stopped.
    open func readable() { stopReading() }

    /// The socket takes bytes again. Comes again until the socket is full or disarmed.
    open func writable() { disarmWrite() }

    /// The connection stands, or failed for the reason given. Only after `init(connectingTo:on:)`, and once.
    open func connected(_ error: SystemError?) {}

    /// The turn of this socket in a `SocketRound` that it was added to. It may have been closed meanwhile.
    open func roundCame() {}

    /// All others of the round have had their turn: the place to write what waited for that.
    open func roundEnds() {}

    /// The peer has gone, as `watchForDeparture()` was to find out.
    open func peerHasGone() {}

    /// An iteration of the loop ends in which `callAtIterationEnd()` was called.
    open func iterationEnds() {}

    /// The kernel or the memory has no room to watch this socket. Closes it, unless overridden.
    open func cannotWatch(_ error: SystemError) { close() }

    /// `iterationEnds()` is called once for each call of this, when all sockets that are ready in this iteration have
    /// been served: the place to write what gathered meanwhile. Written one after another, bytes for a peer wake it
    /// once, not each time. On the loop's thread.
    public final func callAtIterationEnd() { loop.callAtIterationEnd(self) }

    // MARK: Watching

    /// Whether bytes to read are reported.
    public final var isReading: Bool { unsafe readWatch != nil }

    /// `readable()` is called from now on whenever bytes, or the end of the stream, wait to be read; again as long as
    /// they are left there. Does nothing if that is already so. On the loop's thread.
    public final func startReading() {
        guard unsafe readWatch == nil, !isClosed else { return }
        unsafe departureWatch = nil
        do throws(SystemError) {
            unsafe readWatch = try Watch(loop.base, descriptor, EV_READ | EV_PERSIST, context: context(self)) {
                _, _, context in
                unsafe watcher(context, as: Socket.self)?.becameReadable()
            }
        } catch {
            reportLater(error)
        }
    }

    /// `readable()` is no longer called; the kernel's buffer fills, and then the peer waits. On the loop's thread.
    public final func stopReading() { unsafe readWatch = nil }

    /// Whether `writable()` is still to come. On the loop's thread.
    public final var isWriteArmed: Bool { unsafe writeWatch != nil }

    /// `writable()` is called as soon as the kernel takes bytes again, until `disarmWrite()`: for use after
    /// `.wouldBlock`. On the loop's thread.
    public final func armWrite() {
        guard unsafe writeWatch == nil, !isClosed else { return }
        unsafe departureWatch = nil
        do throws(SystemError) {
            unsafe writeWatch = try Watch(loop.base, descriptor, EV_WRITE | EV_PERSIST, context: context(self)) {
                _, _, context in
                unsafe watcher(context, as: Socket.self)?.becameWritable()
            }
        } catch {
            reportLater(error)
        }
    }

    /// While connecting this does nothing: the outcome is being waited for.
    public final func disarmWrite() {
        if !isConnecting, unsafe writeWatch != nil { unsafe writeWatch = nil }
    }

    /// After the end of the stream, when reading has stopped and nothing waits to be written: `peerHasGone()` is called
    /// when the peer's side is known to be closed for good, by its reset. Until `armWrite()` or `startReading()`: whoever
    /// writes or reads is told of that as well. Does nothing if that is already so. On the loop's thread.
    public final func watchForDeparture() {
        guard unsafe departureWatch == nil, unsafe writeWatch == nil, unsafe readWatch == nil, !isClosed else { return }
        do throws(SystemError) {
            // By edges: the end of the stream, which stays to be read, is told of once.
            unsafe departureWatch = try Watch(
                loop.base, descriptor, EV_READ | EV_PERSIST | EV_ET, context: context(self)
            ) { _, _, context in
                unsafe watcher(context, as: Socket.self)?.mayHaveLostPeer()
            }
        } catch {
            reportLater(error)
        }
    }

    /// Whether the connection is at its end in both directions: by a reset, or, on a Unix socket, since the peer has
    /// closed. On TCP a peer that has closed looks like one that only sends no more until something is written to it.
    public final var hasLostPeer: Bool {
        var entry = pollfd(fd: descriptor, events: 0, revents: 0)
        return unsafe poll(&entry, 1, 0) > 0 && Int32(entry.revents) & (POLLHUP | POLLERR) != 0
    }

    private func mayHaveLostPeer() {
        loop.noteBeginning()
        if hasLostPeer { peerHasGone() }
    }

    private func becameReadable() {
        loop.noteBeginning()
        readable()
    }

    private func becameWritable() {
        loop.noteBeginning()
        guard isConnecting else { return writable() }
        isConnecting = false
        disarmWrite()
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        let result = unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
        if result != 0 { code = errno }
        connected(code == 0 ? nil : SystemError(.connect, code: code))
    }

    /// Never on the caller's stack: it does not expect that arming closes the socket.
    private func reportLater(_ error: SystemError) {
        loop.atIterationEnd { [self] in
            if !isClosed { cannotWatch(error) }
        }
    }

    // MARK: Ending

    /// Closes; bytes already written still go out. May be called again. The peer hears of it at once, or, if very many
    /// close together, after as many iterations of the loop as they take (`EventLoop.postponesEnd`).
    public final func close() { releaseDescriptor() }

    /// Closes with a reset, so that the peer sees that what it received is not complete. On a Unix socket this is
    /// `close`.
    public final func abort() {
        guard !isClosed else { return }
        // Fails on Unix sockets, which have no reset.
        try? setSocketOption(descriptor, SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0))
        releaseDescriptor()
    }

    /// Sends the end of the stream; reading goes on.
    /// - Throws: if the socket is closed, or its connection has ended.
    public final func shutdownWrite() throws(SystemError) {
        guard Glibc.shutdown(descriptor, Int32(SHUT_WR)) == 0 else { throw .last(.shutdown) }
    }

    private func releaseDescriptor() {
        guard descriptor >= 0 else { return }
        // The watches first: libevent must not be left with a number that may mean another file next.
        unsafe readWatch = nil
        unsafe writeWatch = nil
        unsafe departureWatch = nil
        loop.close(descriptor)
        descriptor = -1
    }

    // MARK: Addresses

    /// Our end's address. Asks the kernel.
    /// - Throws: if the socket is closed.
    public final func localAddress() throws(SystemError) -> SocketAddress {
        try unsafe SocketAddress.asking(.getsockname, descriptor) { unsafe getsockname($0, $1, $2) }
    }

    /// The other end's address. Asks the kernel.
    /// - Throws: if the socket is closed, or its peer has gone.
    public final func peerAddress() throws(SystemError) -> SocketAddress {
        try unsafe SocketAddress.asking(.getpeername, descriptor) { unsafe getpeername($0, $1, $2) }
    }
}
