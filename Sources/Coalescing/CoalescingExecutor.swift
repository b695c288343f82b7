/// Turns a burst of elements into one action: `combine` folds each new element into those gathered, and `act` gets the
/// whole after `coalesceWait` of quiet, but never later than `maxWait` after the first.
///
///     let log = CoalescingExecutor(
///         coalesceWait: .milliseconds(50), maxWait: .seconds(1), timers: loopTimers, on: loop,
///         combine: { lines, more in lines += more }, act: { lines in file.write(lines) })
///     log.add(["GET / 200"])
///
/// Every element is acted on exactly once or dropped by `cancel()`. Call it from any thread. `act` runs on the queue,
/// in the order in which the bursts ended as long as they are ended by one thread at a time; `combine` runs under the
/// executor's lock and must be quick.
public final class CoalescingExecutor<Element: Sendable>: Sendable {
    private let burst: Protected<Burst<Element>>
    private let timers: any TimerSource
    private let queue: any CallbackQueue
    private let combine: @Sendable (inout Element, Element) -> Void
    private let act: @Sendable (Element) -> Void

    /// - Parameters:
    ///   - coalesceWait: how long it must have been quiet.
    ///   - maxWait: the longest that the first element of a burst waits.
    ///   - timers: tells how much time has passed, and wakes the executor.
    ///   - queue: where `act` runs.
    ///   - combine: adds the new element to those gathered so far.
    ///   - act: gets what a burst has gathered.
    public init(
        coalesceWait: Duration, maxWait: Duration, timers: any TimerSource, on queue: any CallbackQueue,
        combine: @escaping @Sendable (inout Element, Element) -> Void, act: @escaping @Sendable (Element) -> Void
    ) {
        burst = Protected(Burst(coalesceWait: coalesceWait, maxWait: maxWait))
        self.timers = timers
        self.queue = queue
        self.combine = combine
        self.act = act
    }

    deinit {
        perform(.act, with: burst.withLock { $0.take() })
    }

    /// Adds to the burst, or begins one.
    public func add(_ element: Element) {
        let now = timers.now
        let (action, gathered) = burst.withLock { burst in
            let action = burst.added(element, at: now, combine: combine)
            return (action, action == .act ? burst.take() : nil)
        }
        perform(action, with: gathered)
    }

    /// Acts now on what has been gathered, if anything.
    public func flush() {
        perform(.act, with: burst.withLock { $0.take() })
    }

    /// Drops what has been gathered.
    ///
    /// - Returns: What was dropped, if anything.
    @discardableResult
    public func cancel() -> Element? {
        burst.withLock { $0.take() }
    }

    private func fired(_ number: UInt64) {
        let now = timers.now
        let (action, gathered) = burst.withLock { burst in
            let action = burst.fired(number, at: now)
            return (action, action == .act ? burst.take() : nil)
        }
        perform(action, with: gathered)
    }

    private func perform(_ action: Burst<Element>.Action, with gathered: Element?) {
        switch action {
        case .none:
            break
        case .wake(let number, let delay):
            // Weak: a distant timer must not keep it alive; what is gathered when it goes is acted on then.
            timers.schedule(after: delay) { [weak self] in self?.fired(number) }
        case .act:
            if let gathered { queue.enqueue { [act] in act(gathered) } }
        }
    }
}

/// One burst after the other: what has been gathered and when it is due. Pure.
struct Burst<Element: Sendable>: Sendable {
    /// ```
    /// idle ─added→ gathering ─fired, due / take→ idle
    ///               │     ↑
    ///               └added┘ (due moves, the timer does not: it finds out when it fires)
    /// ```
    private enum Phase: Sendable {
        case idle
        case gathering(Element, since: Duration, latest: Duration)
    }

    enum Action: Equatable, Sendable {
        case none
        /// Call `fired(number, …)` after the delay.
        case wake(number: UInt64, after: Duration)
        /// Take what has been gathered and act on it.
        case act
    }

    let coalesceWait: Duration
    let maxWait: Duration
    private var phase = Phase.idle
    /// The burst's number, so that the timer of an earlier one changes nothing.
    private var number: UInt64 = 0

    init(coalesceWait: Duration, maxWait: Duration) {
        self.coalesceWait = coalesceWait
        self.maxWait = maxWait
    }

    mutating func added(_ element: Element, at now: Duration, combine: (inout Element, Element) -> Void) -> Action {
        switch phase {
        case .idle:
            number += 1
            phase = .gathering(element, since: now, latest: now)
            return .wake(number: number, after: min(coalesceWait, maxWait))
        case .gathering(var gathered, let since, _):
            // Given up first, so that combining appends in place rather than to a copy.
            phase = .idle
            combine(&gathered, element)
            phase = .gathering(gathered, since: since, latest: now)
            // A timer may be late; the promise is not.
            return now >= since + maxWait ? .act : .none
        }
    }

    mutating func fired(_ number: UInt64, at now: Duration) -> Action {
        guard number == self.number, case .gathering(_, let since, let latest) = phase else { return .none }
        let due = min(latest + coalesceWait, since + maxWait)
        return now >= due ? .act : .wake(number: number, after: due - now)
    }

    /// Ends the burst.
    mutating func take() -> Element? {
        guard case .gathering(let gathered, _, _) = phase else { return nil }
        phase = .idle
        return gathered
    }
}
