import CLibevent

/// A timer on a loop, for rare events; each one is a libevent timer. For a deadline per connection use `DeadlineWheel`.
/// The loop keeps a pending timer alive, and drops it when the loop ends.
@safe public final class Timer {
    private var watch: Watch?
    private var action: (() -> Void)?
    private let repeats: Bool
    /// The time at which the timer is to fire, in nanoseconds of the loop's clock.
    private var due = Int64.max
    /// Whether the timer waits for the sockets, since the clock has jumped.
    private var isPausing = false
    /// Alive whenever `watch` is set: the loop empties its timers before it is deinitialized.
    private unowned let loop: EventLoop

    fileprivate init(on loop: EventLoop, repeats: Bool, action: @escaping () -> Void) {
        self.loop = loop
        self.repeats = repeats
        self.action = action
    }

    /// Cancels and releases the action. Does nothing if the action has already run. On the loop's thread.
    public func cancel() {
        guard watch != nil else { return }
        watch = nil
        action = nil
        loop.timers[ObjectIdentifier(self)] = nil
    }

    func loopEnds() {
        watch = nil
        action = nil
    }

    fileprivate func start(_ delay: Int64) throws(SystemError) {
        let (time, overflow) = loop.now.addingReportingOverflow(delay)
        due = overflow ? .max : time
        watch = try unsafe Watch(
            loop.base, -1, repeats ? EV_PERSIST : 0, timeout: delay, context: context(self)
        ) { _, _, context in
            unsafe watcher(context, as: Timer.self)?.fire()
        }
        loop.timers[ObjectIdentifier(self)] = self
    }

    private func fire() {
        loop.noteBeginning()
        // The sockets come first (`EventLoop.Jump`). A repeating timer is exempt: it does not end a wait.
        if !repeats, !isPausing, loop.now - due >= EventLoop.Jump.least {
            isPausing = true
            // If there is no memory for the new watch, fire now.
            if (try? start(EventLoop.Jump.pause)) != nil { return }
        }
        let action = action
        if !repeats { cancel() }
        action?()
    }
}

extension EventLoop {
    /// Runs `action` once, `after` nanoseconds from now. libevent uses the kernel's coarse clock, which is up to 4 ms
    /// off. On the loop's thread.
    @discardableResult
    public func schedule(after delay: Int64, _ action: @escaping () -> Void) -> Timer {
        start(Timer(on: self, repeats: false, action: action), delay)
    }

    /// Runs `action` every `interval` nanoseconds until cancelled. On the loop's thread.
    @discardableResult
    public func schedule(every interval: Int64, _ action: @escaping () -> Void) -> Timer {
        start(Timer(on: self, repeats: true, action: action), max(interval, 1_000_000))
    }

    private func start(_ timer: Timer, _ delay: Int64) -> Timer {
        do {
            try timer.start(delay)
        } catch {
            // A timer needs no kernel resource. Only memory can be missing, and for lack of memory Swift stops the
            // program everywhere.
            preconditionFailure("out of memory for a timer")
        }
        return timer
    }
}

extension Duration {
    /// Whole nanoseconds, the unit of `EventLoop.now` and of all deadlines. Saturates at `Int64.max`.
    package var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? .max : whole &+ attoseconds / 1_000_000_000
    }
}
