public import Bytes
import CLibevent
import Glibc

/// An object that puts work off until other sockets have been read (`EventLoop.afterReading`).
public protocol IterationReader: AnyObject {
    /// Called on the loop's thread when the other sockets have been read.
    func socketsWereRead()
}

/// The event loop of one thread: a libevent base with its timers, signals, sockets and mailbox.
///
/// A loop and all objects made on it belong to the thread that runs the loop. They are not `Sendable`, so the compiler
/// keeps them on that thread and they take no locks; other threads hold the loop's `handle`. An iteration does this, in
/// this order:
/// 1. It waits for events.
/// 2. It calls the watches of ready sockets and due timers, and runs a batch of posted jobs if another thread rang.
/// 3. It tells the readers that the sockets have been read (`afterReading`), and then calls `readable` of sockets whose
///    layer holds bytes.
/// 4. It runs the jobs that only this loop has posted, for which no other thread rang.
/// 5. It calls `Socket.iterationEnds` and the hooks of `atIterationEnd`.
/// 6. It closes ended sockets (`ClosingQueue`).
@safe public final class EventLoop {
    /// The loop as seen from other threads.
    public let handle: LoopHandle
    let base: OpaquePointer

    // No run-time exclusivity check. Other modules read these fields several times per request, and only a run-time
    // check could rule out a concurrent write there. None can occur: the fields are numbers, and only `readClocks` and
    // `run` write them, which call no other code meanwhile.
    @exclusivity(unchecked) @usableFromInline var clockIsFresh = false
    @exclusivity(unchecked) @usableFromInline var monotonic: Int64 = 0
    @exclusivity(unchecked) @usableFromInline var wallClock: Int64 = 0
    @exclusivity(unchecked) @usableFromInline var wallClockMillis: Int64 = 0
    /// How far the wall clock is ahead of the monotonic clock. The value is used until `leadHoldsUntil` on the
    /// monotonic clock.
    @exclusivity(unchecked) private var wallClockLead: Int64 = 0
    @exclusivity(unchecked) private var leadHoldsUntil = Int64.min
    private let iterations = DurationHistogram()

    private var wakeUp: Watch?
    private var batch: [LoopHandle.Parcel] = []
    /// The readers that wait until the sockets have been read.
    private let readers = LaterList<any IterationReader>()
    /// Sockets whose layer holds bytes that the kernel does not report.
    private let socketsToRead = LaterList<Socket>()
    /// See `scratch`.
    private var scratchMemory: UnsafeMutableRawBufferPointer?
    /// Sockets whose `iterationEnds()` is to be called.
    private let socketsToCall = LaterList<Socket>()
    private let hooks = LaterList<() -> Void>()
    private var closing = ClosingQueue()
    private var isRunning = false
    private(set) var isFinished = false

    /// Keeps pending timers alive; see `Timer`.
    var timers: [ObjectIdentifier: Timer] = [:]
    var signals: [ObjectIdentifier: SignalWatch] = [:]
    /// Keeps name servers with open questions alive; see `NameServers`.
    var nameServers: [ObjectIdentifier: NameServers] = [:]

    private var wheel: DeadlineWheel?

    /// Makes a loop for the calling thread, which must run it.
    /// - Throws: if no descriptor or no memory is left.
    public convenience init() throws(SystemError) {
        try self.init(handle: LoopHandle())
        handle.claim()
    }

    /// Makes a loop for the thread that will `claim` its handle.
    init(handle: LoopHandle) throws(SystemError) {
        guard let configuration = unsafe event_config_new() else { throw SystemError(.eventBase, code: ENOMEM) }
        defer { unsafe event_config_free(configuration) }
        // `EVENT_BASE_FLAG_NOLOCK`, since only the mailbox crosses threads, and the mailbox has its own lock.
        let flags = UInt32(EVENT_BASE_FLAG_NOLOCK.rawValue | EVENT_BASE_FLAG_IGNORE_ENV.rawValue)
        _ = unsafe event_config_set_flag(configuration, Int32(flags))
        guard let base = unsafe event_base_new_with_config(configuration) else { throw .last(.eventBase) }
        self.handle = handle
        unsafe self.base = base
        wakeUp = try unsafe Watch(
            base, handle.wakeUp.rawValue, EV_READ | EV_PERSIST | EV_ET, context: context(self)
        ) { _, _, context in
            unsafe watcher(context, as: EventLoop.self)?.runBatch()
        }
    }

    deinit {
        // Only this loop's own watches can be left: sockets, listeners and resolvers keep their loop alive. Jobs that
        // are still posted are dropped with the handle.
        for timer in timers.values { timer.loopEnds() }
        for signal in signals.values { signal.loopEnds() }
        handle.beginClosing()
        while handle.takeLastBatch(&batch) { batch.removeAll() }
        handle.disown()
        wakeUp = nil
        unsafe scratchMemory?.deallocate()
        unsafe event_base_free(base)
    }
}

// MARK: Running

extension EventLoop {
    /// Runs the loop on the calling thread until `stop`. It may be run again afterwards.
    public func run() {
        precondition(!isFinished, "a finished loop was run")
        handle.claim()
        isRunning = true
        while !handle.mustStop {
            unsafe clockIsFresh = false
            let waits =
                hooks.isEmpty && readers.isEmpty && socketsToCall.isEmpty && !handle.hasOwnPosts && closing.isEmpty
                && socketsToRead.isEmpty
            let result = unsafe event_base_loop(base, waits ? EVLOOP_ONCE : EVLOOP_ONCE | EVLOOP_NONBLOCK)
            precondition(result >= 0, "the kernel refused to wait for events")
            if !readers.isEmpty { callIterationReaders() }
            if !socketsToRead.isEmpty { readOn() }
            if handle.hasOwnPosts { runBatch() }
            if !socketsToCall.isEmpty { callEndOfIteration() }
            if !hooks.isEmpty { runHooks() }
            closing.iterationEnds()
            // If no code asked for the time, the iteration did next to nothing, and is not counted.
            if unsafe clockIsFresh { countIteration() }
        }
        closing.closeAll()
        isRunning = false
        unsafe clockIsFresh = false
        handle.forgetStop()
    }

    /// Makes `run` return when the current iteration has ended.
    public func stop() { handle.stop() }

    /// Runs `hook` once at the end of the current iteration, after its jobs. Use it to write output that was gathered
    /// during the iteration. A hook added by a hook runs at the end of the next iteration, which then does not wait.
    public func atIterationEnd(_ hook: @escaping () -> Void) { hooks.add(hook) }

    /// Calls `reader.socketsWereRead()` once, when the ready sockets of this iteration have been read and before any
    /// posted job runs. If another loop rings, only the sockets ahead of its bell have been read by then. On the loop's
    /// thread.
    public func afterReading(_ reader: any IterationReader) { readers.add(reader) }

    /// Calls `socket.iterationEnds()` once at the end of the current iteration, before the hooks and without a closure.
    func callAtIterationEnd(_ socket: Socket) { socketsToCall.add(socket) }

    /// Calls `socket.readOn()` once, behind the sockets that the kernel reports as ready.
    func readOn(_ socket: Socket) { socketsToRead.add(socket) }

    /// Bytes that are decrypted already wait for no event. The readers are told again, since the sockets may have given
    /// them more to do.
    private func readOn() {
        socketsToRead.forEachTaken { $0.readOn() }
        if !readers.isEmpty { callIterationReaders() }
    }

    /// Memory of `SecureLayer.record` bytes for one write, which no other code uses meanwhile.
    var scratch: UnsafeMutableRawBufferPointer {
        if let made = unsafe scratchMemory { return unsafe made }
        let made = UnsafeMutableRawBufferPointer.allocate(byteCount: SecureLayer.record, alignment: 16)
        unsafe scratchMemory = made
        return unsafe made
    }

    /// Closes the descriptor of a socket that is no longer watched, now or in one of the next iterations.
    func close(_ descriptor: Int32) {
        // Outside of `run` no iteration would come to close it later.
        if isRunning { closing.close(descriptor) } else { _ = Glibc.close(descriptor) }
    }

    /// Notes that a socket was made on this loop.
    func noteOpened() {
        if isRunning { closing.noteOpened() }
    }

    /// Closes some of the descriptors that wait to be closed, since descriptors are short.
    /// - Returns: whether there were any.
    func freeDescriptors() -> Bool { closing.closeSome() }

    /// Ends the loop: refuses new posts, runs the jobs already posted and the hooks, drops timers and signals. The
    /// loop's thread calls this after `run`, at most once; a `LoopThread` calls it by itself.
    public func finish() {
        guard !isFinished else { return }
        isFinished = true
        handle.beginClosing()
        runBatch()
        callEndOfIteration()
        runHooks()
        for servers in nameServers.values { servers.loopEnds() }
        for timer in timers.values { timer.cancel() }
        for signal in signals.values { signal.cancel() }
        wheel?.loopEnds()
        hooks.removeAll()
        readers.removeAll()
        socketsToCall.removeAll()
        socketsToRead.removeAll()
        // These jobs release objects whose last references other threads dropped a moment ago.
        while handle.takeLastBatch(&batch) { runTakenBatch() }
        handle.disown()
    }

    private func runBatch() {
        noteBeginning()
        // Tell the readers first, so that jobs find no half-done work, even if another loop rang before all sockets
        // were read.
        if !readers.isEmpty { callIterationReaders() }
        handle.takeBatch(&batch)
        runTakenBatch()
    }

    private func runTakenBatch() {
        // The jobs run in order. A job that they post goes into the mailbox, not into `batch`.
        for parcel in batch { parcel.job() }
        // Release the memory of a rare burst.
        batch.removeAll(keepingCapacity: batch.capacity <= 4096)
    }

    private func callIterationReaders() { readers.forEachTaken { $0.socketsWereRead() } }

    private func callEndOfIteration() { socketsToCall.forEachTaken { $0.iterationEnds() } }

    private func runHooks() { hooks.forEachTaken { $0() } }
}

// MARK: Time

extension EventLoop {
    /// A jump of the clock: the process was stopped and continued, its container frozen, or its machine suspended, and
    /// no socket was read meanwhile. The kernel then interrupts the wait for sockets without saying which are ready,
    /// and libevent finds the timers due. Without a pause, a peer that has answered in time would be treated as too
    /// slow.
    enum Jump {
        /// A timer that is this late, in nanoseconds, indicates a jump. An iteration takes this long only under far too
        /// much load; then it does no harm that the sockets come first.
        static let least: Int64 = 500_000_000
        /// How long timers wait for the sockets after a jump, in nanoseconds. In that time about ten thousand sockets
        /// are read and served, and the jobs that follow from them reach other loops.
        static let pause: Int64 = 500_000_000
    }

    /// The loop's wheel for thousands of deadlines; see `DeadlineWheel`.
    public var deadlines: DeadlineWheel {
        if let wheel { return wheel }
        let made = DeadlineWheel(loop: self)
        wheel = made
        return made
    }
}

extension EventLoop {
    /// Nanoseconds on the monotonic clock (`CLOCK_MONOTONIC`) when the iteration began. The clock is read at the first
    /// use in an iteration: when its first socket is ready, its first timer is due, or its batch begins.
    @inlinable public var now: Int64 {
        if unsafe !clockIsFresh { readClocks() }
        return unsafe monotonic
    }

    /// Seconds since 1970 by the wall clock, at the same moment as `now`.
    @inlinable public var wallClockSeconds: Int64 {
        if unsafe !clockIsFresh { readClocks() }
        return unsafe wallClock
    }

    /// Milliseconds since 1970 by the wall clock, at the same moment as `now`.
    @inlinable public var wallClockMilliseconds: Int64 {
        if unsafe !clockIsFresh { readClocks() }
        return unsafe wallClockMillis
    }

    /// The durations of iterations, from the end of the wait for events to the end of the iteration's work. On the
    /// loop's thread.
    public var iterationTimes: DurationCounts { iterations.read() }

    /// Reads the clocks at the end of the wait for events, since the callback may run for a while before it asks for
    /// `now`.
    @inline(__always)
    func noteBeginning() {
        if unsafe !clockIsFresh { readClocks() }
    }

    private func countIteration() {
        iterations.add(nanoseconds: UInt64(max(0, unsafe read(CLOCK_MONOTONIC) - monotonic)))
    }

    /// How long `wallClockLead` is taken as valid, in nanoseconds: the wall clock is set seldom. So a busy loop reads a
    /// clock only twice in an iteration, at its beginning and at its end.
    private static let leadHolds: Int64 = 10_000_000

    /// Reads how far the wall clock is ahead. Repeats if the thread was held up between the two readings.
    private func readLead(at now: Int64) {
        var before = now
        for _ in 0..<4 {
            let wall = read(CLOCK_REALTIME)
            let after = read(CLOCK_MONOTONIC)
            unsafe wallClockLead = wall - before
            if after - before < 1_000_000 { break }
            before = after
        }
        unsafe leadHoldsUntil = now + Self.leadHolds
    }

    @usableFromInline func readClocks() {
        let now = read(CLOCK_MONOTONIC)
        unsafe monotonic = now
        if unsafe now >= leadHoldsUntil { readLead(at: now) }
        let wall = unsafe now + wallClockLead
        unsafe wallClock = wall / 1_000_000_000
        unsafe wallClockMillis = wall / 1_000_000
        // Outside of `run` there is no iteration whose beginning would make the reading stale.
        unsafe clockIsFresh = isRunning
    }

    @inline(__always)
    private func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        unsafe clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
