import CLibevent
import Glibc

/// One non-blocking stream socket on a loop. Subclasses override the callbacks for readable and writable: libevent gets
/// the connection itself as its context, without a closure for each socket and a reference cycle through it.
///
/// The owner keeps the object; dropping it closes the socket. Call all methods on the loop's thread. The loop calls the
/// callbacks, never from inside a method of this class, and never after `close`. A callback may close the socket: the
/// object lives until the callback returns. A watch costs memory only while it is armed.
@safe open class Socket: DeadlineTarget {
    /// The loop on which all methods are called, and which calls the callbacks.
    public let loop: EventLoop
    /// -1 once closed.
    var descriptor: Int32
    private var isConnecting = false
    /// See `boundSendQueue`.
    var sendQueueIsBounded = false
    // Used at every read and write. No run-time exclusivity check: making and dropping a watch calls only libevent,
    // which does not call back from there.
    @exclusivity(unchecked) private var readWatch: Watch?
    @exclusivity(unchecked) private var writeWatch: Watch?
    /// See `watchForDeparture`. libevent watches a descriptor either for edges or for levels, not for both.
    @exclusivity(unchecked) private var departureWatch: Watch?
    /// What encrypts the bytes; `nil` in the clear.
    @exclusivity(unchecked) private(set) var layer: SecureLayer?
    /// Whether the loop will call `readOn()`.
    private var isToReadOn = false
    private var waitsToSendEnd = false

    /// Takes over a connected socket, such as one from a `Listener`.
    /// - Parameter layer: through which the bytes pass from now on, on the same descriptor.
    public init(adopting descriptor: consuming Descriptor, through layer: SecureLayer? = nil, on loop: EventLoop) {
        self.loop = loop
        self.descriptor = descriptor.take()
        unsafe self.layer = layer
        loop.noteOpened()
        super.init()
    }

    /// Begins to connect to `address`; `connected` reports the outcome.
    /// - Throws: if connecting fails at once, for lack of a route or a descriptor.
    public init(connectingTo address: SocketAddress, on loop: EventLoop) throws(SystemError) {
        let descriptor = try Self.descriptor(for: address, on: loop)
        if case .unix = address {} else { try descriptor.setOption(Int32(IPPROTO_TCP), TCP_NODELAY, 1) }
        let result = unsafe address.withMemory { memory, length in
            unsafe Glibc.connect(descriptor.rawValue, memory, length)
        }
        // An interrupted `connect` continues by itself, like one in progress.
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

    deinit { close() }

    /// Whether the descriptor was given back.
    public final var isClosed: Bool { descriptor < 0 }

    /// Whether `shutdownWrite` waits until the kernel takes what the layer says at the end.
    public final var isEndPending: Bool { waitsToSendEnd }

    // MARK: For subclasses

    /// Bytes, or the end of the stream, wait to be read. Called again until they are read or reading is stopped.
    open func readable() { stopReading() }

    /// The socket takes bytes again. Called again until the socket is full or disarmed.
    open func writable() { disarmWrite() }

    /// The connection is established, or failed with `error`. Called once, only after `init(connectingTo:on:)`.
    open func connected(_ error: SystemError?) {}

    /// The turn of this socket in the `SocketBatch` to which it was added. It may have been closed meanwhile.
    /// - Parameter isShared: whether the batch has other sockets, so that output may wait for its end.
    open func batchIsReady(isShared: Bool) {}

    /// All sockets of the batch have had their turn, and this one left no output.
    open func batchEnded() {}

    /// All sockets of the batch have had their turn, and the output that this one left is written.
    /// - Parameter share: its range in the batch's `output`, for bytes that the kernel did not take.
    open func batchEnded(_ result: WriteResult, of share: Range<Int>) {}

    /// The peer has gone; see `watchForDeparture()`.
    open func peerHasGone() {}

    /// The end of the stream, which waited for room after `shutdownWrite` (`isEndPending`), is sent.
    open func endWasSent() {}

    /// The iteration in which `callAtIterationEnd()` was called has come to its end.
    open func iterationEnds() {}

    /// The kernel or the program lacks memory to watch this socket. Closes the socket, unless overridden.
    open func cannotWatch(_ error: SystemError) { close() }

    /// Asks for one call of `iterationEnds()` when all ready sockets of this iteration have been served. Use that call
    /// to write gathered output: written together, the bytes for a peer wake the peer once, not each time. On the
    /// loop's thread.
    public final func callAtIterationEnd() { loop.callAtIterationEnd(self) }

    // MARK: Watching

    /// Whether the loop reports bytes to read.
    public final var isReading: Bool { unsafe readWatch != nil }

    /// From now on, `readable()` is called whenever bytes, or the end of the stream, wait to be read, again and again
    /// until they are read. Does nothing if reading has already started. On the loop's thread.
    public final func startReading() {
        guard unsafe readWatch == nil, !isClosed else { return }
        unsafe departureWatch = nil
        do throws(SystemError) {
            unsafe readWatch = try Watch(loop.base, descriptor, EV_READ | EV_PERSIST, context: context(self)) {
                _, _, context in
                unsafe watcher(context, as: Socket.self)?.becameReadable()
            }
            noteHeldBytes()
        } catch {
            reportLater(error)
        }
    }

    /// From now on, `readable()` is not called. The kernel's buffer fills, and then the peer waits. On the loop's
    /// thread.
    public final func stopReading() { unsafe readWatch = nil }

    /// Whether `writable()` will be called. On the loop's thread.
    public final var isWriteArmed: Bool { unsafe writeWatch != nil }

    /// From now on, `writable()` is called whenever the kernel takes bytes, until `disarmWrite()`. For use after
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

    /// Stops the calls of `writable()`. Does nothing while connecting, since the watch then waits for the outcome, nor
    /// while the end of the stream waits for room.
    public final func disarmWrite() {
        if !isConnecting, !waitsToSendEnd, unsafe writeWatch != nil { unsafe writeWatch = nil }
    }

    /// Calls `peerHasGone()` when the peer has closed its side for good, as its reset shows. For use after the end of
    /// the stream, when reading has stopped and no bytes wait to be written. Ends with `armWrite()` or
    /// `startReading()`, since a read or a write also finds out that the peer has gone. Does nothing if already
    /// watching. On the loop's thread.
    public final func watchForDeparture() {
        guard unsafe departureWatch == nil, unsafe writeWatch == nil, unsafe readWatch == nil, !isClosed else { return }
        do throws(SystemError) {
            // Edge-triggered: the end of the stream, which stays unread, is reported only once.
            unsafe departureWatch = try Watch(
                loop.base, descriptor, EV_READ | EV_PERSIST | EV_ET, context: context(self)
            ) { _, _, context in
                unsafe watcher(context, as: Socket.self)?.mayHaveLostPeer()
            }
        } catch {
            reportLater(error)
        }
    }

    /// Whether the connection is closed in both directions: by a reset or, on a Unix socket, because the peer has
    /// closed. On TCP, a peer that has closed looks like one that only sends no more, until bytes are written to it.
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
        noteHeldBytes()
    }

    /// The kernel does not report bytes that the layer holds already: the loop calls `readable()` for them in this
    /// iteration.
    @inline(__always)
    private func noteHeldBytes() {
        if let layer = unsafe layer { noteBytes(heldBy: layer) }
    }

    @inline(never)
    func noteBytes(heldBy layer: SecureLayer) {
        guard layer.holdsBytes, isReading, !isToReadOn else { return }
        isToReadOn = true
        loop.readOn(self)
    }

    /// Called by the loop for a socket whose layer held bytes.
    func readOn() {
        isToReadOn = false
        guard isReading, unsafe layer?.holdsBytes == true else { return }
        becameReadable()
    }

    private func becameWritable() {
        loop.noteBeginning()
        guard isConnecting else { return waitsToSendEnd ? endPendingStream() : writable() }
        isConnecting = false
        disarmWrite()
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        let result = unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
        if result != 0 { code = errno }
        connected(code == 0 ? nil : SystemError(.connect, code: code))
    }

    private func endPendingStream() {
        guard unsafe layer?.endStream() != false else { return }
        waitsToSendEnd = false
        disarmWrite()
        // Fails if the peer has gone.
        _ = Glibc.shutdown(descriptor, Int32(SHUT_WR))
        endWasSent()
    }

    /// Never on the caller's stack: a caller does not expect that arming a watch closes the socket.
    private func reportLater(_ error: SystemError) {
        loop.atIterationEnd { [self] in
            if !isClosed { cannotWatch(error) }
        }
    }

    // MARK: Ending

    /// Closes the socket; bytes already written still go out. May be called again. The peer learns of it at once or, if
    /// very many sockets close together, some iterations of the loop later (`ClosingQueue`).
    /// A layer tells the peer first that nothing is missing.
    public final func close() {
        if let layer = unsafe layer, !isClosed { _ = layer.endStream() }
        releaseDescriptor()
    }

    /// Closes the socket with a reset, so that the peer sees that the received message is incomplete. On a Unix socket
    /// this is `close`.
    public final func abort() {
        guard !isClosed else { return }
        // Fails on Unix sockets, which have no reset.
        try? setSocketOption(descriptor, SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0))
        releaseDescriptor()
    }

    /// Sends the end of the stream; reading continues.
    /// - Throws: if the socket is closed, or its connection has ended.
    public final func shutdownWrite() throws(SystemError) {
        if let layer = unsafe layer, !isClosed, !layer.endStream() {
            waitsToSendEnd = true
            return armWrite()
        }
        guard Glibc.shutdown(descriptor, Int32(SHUT_WR)) == 0 else { throw .last(.shutdown) }
    }

    /// From now on the bytes pass through `layer`, which must be on this socket's descriptor.
    public final func secure(with layer: SecureLayer) { unsafe self.layer = layer }

    /// The number of the open descriptor, for a layer; -1 once closed.
    public final var descriptorNumber: Int32 { descriptor }

    /// Closes this object, but not the connection, which the caller gets for another object, as it gets the layer.
    /// - Returns: `nil` if the socket is closed.
    public final func handOver() -> Descriptor? {
        guard descriptor >= 0 else { return nil }
        dropWatches()
        defer { descriptor = -1 }
        return Descriptor(adopting: descriptor)
    }

    private func releaseDescriptor() {
        guard descriptor >= 0 else { return }
        dropWatches()
        loop.close(descriptor)
        descriptor = -1
    }

    /// Called before the descriptor is given away: libevent must not keep a number that may soon mean another file.
    private func dropWatches() {
        unsafe readWatch = nil
        unsafe writeWatch = nil
        unsafe departureWatch = nil
    }

    // MARK: Addresses

    /// The local address. Asks the kernel.
    /// - Throws: if the socket is closed.
    public final func localAddress() throws(SystemError) -> SocketAddress {
        try unsafe SocketAddress.asking(.getsockname, descriptor) { unsafe getsockname($0, $1, $2) }
    }

    /// The peer's address. Asks the kernel.
    /// - Throws: if the socket is closed, or its peer has gone.
    public final func peerAddress() throws(SystemError) -> SocketAddress {
        try unsafe SocketAddress.asking(.getpeername, descriptor) { unsafe getpeername($0, $1, $2) }
    }
}
