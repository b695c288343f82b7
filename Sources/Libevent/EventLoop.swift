public import Bytes
import CLibevent
import Glibc

/// Who puts work off until other sockets have been read (`EventLoop.afterReading`).
public protocol IterationReader: AnyObject {
    /// Now they have been. On the loop's thread.
    func socketsWereRead()
}

/// One thread's engine: a libevent base with its timers, signals, sockets and mailbox.
///
/// A loop and everything made on it belong to the thread that runs it. They are not `Sendable`, so the compiler keeps
/// them there and nothing here takes a lock; other threads hold the loop's `handle`. An iteration waits for readiness,
/// runs what is due, among it a batch of posted jobs if another thread rang for it, then what was put off until the
/// sockets have been read (`afterReading`), then the jobs that only this loop has posted, then what waits for its end
/// (`Socket.iterationEnds`, `atIterationEnd`), and closes what has ended (`ClosingQueue`).
@safe public final class EventLoop {
    /// The loop as seen from other threads.
    public let handle: LoopHandle
    let base: OpaquePointer

    // Read several times per request from other modules, where only a run-time check could rule out a concurrent write.
    // There is none: they are numbers, written only by `readClocks` and `run`, which call no other code meanwhile.
    @exclusivity(unchecked) @usableFromInline var clockIsFresh = false
    @exclusivity(unchecked) @usableFromInline var monotonic: Int64 = 0
    @exclusivity(unchecked) @usableFromInline var wallClock: Int64 = 0
    @exclusivity(unchecked) @usableFromInline var wallClockMillis: Int64 = 0
    /// How far the wall clock is ahead of the monotonic one, and until when, on the latter, that is believed.
    @exclusivity(unchecked) private var wallClockLead: Int64 = 0
    @exclusivity(unchecked) private var leadHoldsUntil = Int64.min
    private let iterations = DurationHistogram()

    private var wakeUp: Watch?
    private var batch: [LoopHandle.Parcel] = []
    private var hooks: [() -> Void] = []
    /// What was put off until the sockets have been read.
    private let readers = Exclusive<[any IterationReader]>([])
    /// Sockets whose `iterationEnds()` is to be called.
    private let socketsToTell = Exclusive<[Socket]>([])
    private var closing = ClosingQueue()
    private var isRunning = false
    private(set) var isFinished = false

    /// Pending timers keep alive here; see `Timer`.
    var timers: [ObjectIdentifier: Timer] = [:]
    var signals: [ObjectIdentifier: SignalWatch] = [:]
    /// Those that are being asked keep alive here; see `NameServers`.
    var nameServers: [ObjectIdentifier: NameServers] = [:]

    private var wheel: DeadlineWheel?

    /// A loop of the calling thread, to be run there.
    /// - Throws: if no descriptor or no memory is left.
    public convenience init() throws(SystemError) {
        try self.init(handle: LoopHandle())
        handle.claim()
    }

    /// A loop of the thread that will `claim` it.
    init(handle: LoopHandle) throws(SystemError) {
        guard let configuration = unsafe event_config_new() else { throw SystemError(.eventBase, code: ENOMEM) }
        defer { unsafe event_config_free(configuration) }
        // Only the mailbox crosses threads, and it has its own lock.
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
        // Nothing but this loop's own watches can be left: sockets, listeners and resolvers keep their loop alive.
        // Jobs still posted are dropped with the handle.
        for timer in timers.values { timer.loopEnds() }
        for signal in signals.values { signal.loopEnds() }
        handle.beginClosing()
        while handle.takeLastBatch(&batch) { batch.removeAll() }
        handle.disown()
        wakeUp = nil
        unsafe event_base_free(base)
    }
}

// MARK: Running

extension EventLoop {
    /// Runs on the calling thread until `stop`. May be run again afterwards.
    public func run() {
        precondition(!isFinished, "a finished loop was run")
        handle.claim()
        isRunning = true
        while !handle.mustStop {
            unsafe clockIsFresh = false
            let waits =
                hooks.isEmpty && !hasReaders && !hasSocketsToTell && !handle.hasOwnPosts && closing.isEmpty
            let result = unsafe event_base_loop(base, waits ? EVLOOP_ONCE : EVLOOP_ONCE | EVLOOP_NONBLOCK)
            precondition(result >= 0, "the kernel refused to wait for events")
            if hasReaders { tellReaders() }
            if handle.hasOwnPosts { runBatch() }
            if hasSocketsToTell { tellSockets() }
            if !hooks.isEmpty { runHooks() }
            closing.iterationEnds()
            // Where nobody asked for the time, next to nothing was done.
            if unsafe clockIsFresh { countIteration() }
        }
        closing.closeAll()
        isRunning = false
        unsafe clockIsFresh = false
        handle.forgetStop()
    }

    /// Lets `run` return once the current iteration has ended.
    public func stop() { handle.stop() }

    /// Runs `hook` once at the end of the current iteration, after its jobs: the place to flush what gathered
    /// meanwhile. A hook added by a hook runs at the end of the next iteration, which then does not wait.
    public func atIterationEnd(_ hook: @escaping () -> Void) { hooks.append(hook) }

    /// Calls `reader.socketsWereRead()` once when the sockets that are ready in this iteration have been read, or those
    /// that come before another loop's bell: before any posted job runs. On the loop's thread.
    public func afterReading(_ reader: any IterationReader) { readers.use { $0.append(reader) } }

    /// Calls `socket.iterationEnds()` once at the end of the current iteration, before the hooks and without a closure.
    func callAtIterationEnd(_ socket: Socket) { socketsToTell.use { $0.append(socket) } }

    /// Closes a socket's descriptor that is no longer watched, now or in one of the next iterations.
    func close(_ descriptor: Int32) {
        // Outside of `run` nothing would come back to it.
        if isRunning { closing.close(descriptor) } else { _ = Glibc.close(descriptor) }
    }

    /// A socket was made on this loop.
    func noteOpened() {
        if isRunning { closing.noteOpened() }
    }

    /// Closes some of what waits to be closed, since descriptors are short.
    /// - Returns: whether there was any.
    func freeDescriptors() -> Bool { closing.closeSome() }

    /// Whether so many sockets wait for their end that one more would be left open to its peer for a while, unread. Who
    /// may end something now or later, such as an idle connection, asks before it does; if the answer is yes, it waits
    /// a tick (`DeadlineWheel.Settings.tick`) and asks again: the more ask, the more are closed. On the loop's thread.
    public func postponesEnd() -> Bool { closing.postpones(at: now) }

    private var hasReaders: Bool { readers.use { !$0.isEmpty } }
    private var hasSocketsToTell: Bool { socketsToTell.use { !$0.isEmpty } }

    /// Ends the loop: refuses new posts, runs those already taken and the hooks, drops timers and signals.
    /// Called by the loop's thread after `run`, at most once; a `LoopThread` does it by itself.
    public func finish() {
        guard !isFinished else { return }
        isFinished = true
        handle.beginClosing()
        runBatch()
        tellSockets()
        runHooks()
        for servers in nameServers.values { servers.loopEnds() }
        for timer in timers.values { timer.cancel() }
        for signal in signals.values { signal.cancel() }
        wheel?.loopEnds()
        hooks.removeAll()
        readers.use { $0.removeAll() }
        socketsToTell.use { $0.removeAll() }
        // What arrives to be released here now was dropped on other threads a moment ago.
        while handle.takeLastBatch(&batch) { runTakenBatch() }
        handle.disown()
    }

    private func runBatch() {
        noteBeginning()
        // Jobs find nothing half done, also where another loop's bell was heard before all sockets were read.
        if hasReaders { tellReaders() }
        handle.takeBatch(&batch)
        runTakenBatch()
    }

    private func runTakenBatch() {
        // Jobs run and are released one by one in order; what they post lands in the mailbox, not here.
        for parcel in batch { parcel.job() }
        // A rare burst does not keep its memory forever.
        batch.removeAll(keepingCapacity: batch.capacity <= 4096)
    }

    private func tellReaders() {
        var due: [any IterationReader] = []
        readers.use { swap(&due, &$0) }
        for reader in due { reader.socketsWereRead() }
        due.removeAll(keepingCapacity: true)
        // Reuse the array's storage.
        readers.use { if $0.isEmpty { swap(&due, &$0) } }
    }

    private func tellSockets() {
        var due: [Socket] = []
        socketsToTell.use { swap(&due, &$0) }
        for socket in due { socket.iterationEnds() }
        due.removeAll(keepingCapacity: true)
        // Reuse the array's storage.
        socketsToTell.use { if $0.isEmpty { swap(&due, &$0) } }
    }

    private func runHooks() {
        var due: [() -> Void] = []
        swap(&due, &hooks)
        for hook in due { hook() }
        due.removeAll(keepingCapacity: true)
        if hooks.isEmpty { swap(&due, &hooks) }
    }
}

// MARK: Time

extension EventLoop {
    /// When the process is stopped and continued, its container frozen, or its machine suspended, time passes in which
    /// nothing was read. The kernel then interrupts the wait for sockets without saying which are ready, and the timers
    /// are found to be due: without a pause, whoever has answered in time would be told to have been too slow.
    enum Jump {
        /// So late, in nanoseconds, a timer is behind a jump: no iteration takes so long, unless there is far too much to
        /// do; then it does no harm that the sockets come first.
        static let least: Int64 = 500_000_000
        /// How long timers wait for the sockets behind it, in nanoseconds: some ten thousand are read and served in that
        /// time, and what they bring reaches other loops.
        static let pause: Int64 = 500_000_000
    }

    /// Thousands of deadlines; see `DeadlineWheel`.
    public var deadlines: DeadlineWheel {
        if let wheel { return wheel }
        let made = DeadlineWheel(loop: self)
        wheel = made
        return made
    }
}

extension EventLoop {
    /// Nanoseconds on the monotonic clock (`CLOCK_MONOTONIC`) when the iteration began. Read when first asked for, which
    /// is when its first socket is ready, its first timer due, or its batch begins.
    @inlinable public var now: Int64 {
        if unsafe !clockIsFresh { readClocks() }
        return unsafe monotonic
    }

    /// Seconds since 1970 by the wall clock, of the same moment as `now`.
    @inlinable public var wallClockSeconds: Int64 {
        if unsafe !clockIsFresh { readClocks() }
        return unsafe wallClock
    }

    /// Milliseconds since 1970 by the wall clock, of the same moment as `now`.
    @inlinable public var wallClockMilliseconds: Int64 {
        if unsafe !clockIsFresh { readClocks() }
        return unsafe wallClockMillis
    }

    /// How long iterations took, from when the wait for something to do was over until they had done it. On the loop's
    /// thread.
    public var iterationTimes: DurationCounts { iterations.read() }

    /// The wait is over: something is called that may take its time before it asks for it.
    @inline(__always)
    func noteBeginning() {
        if unsafe !clockIsFresh { readClocks() }
    }

    private func countIteration() {
        iterations.add(nanoseconds: UInt64(max(0, unsafe read(CLOCK_MONOTONIC) - monotonic)))
    }

    /// How long the wall clock is taken to keep its distance from the monotonic one, in nanoseconds: it is set seldom. So
    /// a busy loop reads a clock twice an iteration, at each end.
    private static let leadHolds: Int64 = 10_000_000

    /// Reads how far the wall clock is ahead; again, where the thread was held up between the two readings.
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
