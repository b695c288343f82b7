/// Turns a burst of elements into one action: `combine` folds each new element into the gathered ones, and `act` gets
/// the whole after `coalesceWait` without a new element, but never later than `maxWait` after the first one.
///
///     let log = CoalescingExecutor(
///         coalesceWait: .milliseconds(50), maxWait: .seconds(1), timers: loopTimers, on: loop,
///         combine: { lines, more in lines += more }, act: { lines in file.write(lines) })
///     log.add(["GET / 200"])
///
/// Every element is acted on exactly once, or dropped by `cancel()`. Every method may be called on any thread. `act`
/// runs on the queue, in the order in which the bursts ended, as long as one thread at a time ends them. `combine` runs
/// under the executor's lock and must be quick.
public final class CoalescingExecutor<Element: Sendable>: Sendable {
    private let burst: Protected<Burst<Element>>
    private let timers: any TimerSource
    private let queue: any CallbackQueue
    private let combine: @Sendable (inout Element, Element) -> Void
    private let act: @Sendable (Element) -> Void

    /// - Parameters:
    ///   - coalesceWait: the time without a new element after which a burst ends.
    ///   - maxWait: the longest time that the first element of a burst waits.
    ///   - timers: the clock, and the timers that wake the executor.
    ///   - queue: the queue on which `act` runs.
    ///   - combine: adds the new element to the gathered ones.
    ///   - act: gets the gathered elements of a burst.
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

    /// Adds `element` to the burst, or begins a burst.
    public func add(_ element: Element) {
        let now = timers.now
        let (action, gathered) = burst.withLock { burst in
            let action = burst.added(element, at: now, combine: combine)
            return (action, action == .act ? burst.take() : nil)
        }
        perform(action, with: gathered)
    }

    /// Acts now on the gathered elements, if any.
    public func flush() {
        perform(.act, with: burst.withLock { $0.take() })
    }

    /// Drops the gathered elements.
    ///
    /// - Returns: the dropped elements, if any.
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
            // Weak: a distant timer must not keep the executor alive. Its `deinit` acts on the elements gathered by
            // then.
            timers.schedule(after: delay) { [weak self] in self?.fired(number) }
        case .act:
            if let gathered { queue.enqueue { [act] in act(gathered) } }
        }
    }
}

/// One burst after the other: the gathered elements and the time when they are due. Pure.
struct Burst<Element: Sendable>: Sendable {
    /// ```
    /// idle ─added→ gathering ─fired, due / take→ idle
    ///               │     ↑
    ///               └added┘ (the due time moves, the timer does not: it looks at the due time when it fires)
    /// ```
    private enum Phase: Sendable {
        case idle
        case gathering(Element, since: Duration, latest: Duration)
    }

    enum Action: Equatable, Sendable {
        case none
        /// Call `fired(number, …)` after the delay.
        case wake(number: UInt64, after: Duration)
        /// Take the gathered elements and act on them.
        case act
    }

    let coalesceWait: Duration
    let maxWait: Duration
    private var phase = Phase.idle
    /// The burst's number, so that the timer of an earlier burst has no effect.
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
            // The phase gives the elements up first, so that `combine` appends in place and not to a copy.
            phase = .idle
            combine(&gathered, element)
            phase = .gathering(gathered, since: since, latest: now)
            // The timer may be late, but `maxWait` must hold.
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
