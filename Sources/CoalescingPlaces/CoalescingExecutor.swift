public import Coalescing

/// Turns a burst of elements into one action: `combine` folds each new element into the gathered ones, and `act` gets
/// the whole after `coalesceWait` without a new element, but never later than `maxWait` after the first one.
///
///     let log = CoalescingExecutor(
///         coalesceWait: .milliseconds(50), maxWait: .seconds(1), timers: loopTimers, on: loop,
///         combine: { lines, more in lines += more }, act: { lines in file.write(lines) })
///     log.add(["GET / 200"])
///
/// With `firstAtOnce`, the first element of a burst is acted on at once, and the later ones together, after the same
/// waits: for an action that should not be late, and need not run often. Then `maxWait` is the longest time between two
/// actions while elements wait, and the burst ends `coalesceWait` after its last action.
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
    private let firstAtOnce: Bool

    /// - Parameters:
    ///   - coalesceWait: the time without a new element after which a burst ends.
    ///   - maxWait: the longest time that the first element of a burst waits.
    ///   - firstAtOnce: whether `act` gets the first element of a burst at once, and only the later ones together.
    ///   - timers: the clock, and the timers that wake the executor.
    ///   - queue: the queue on which `act` runs.
    ///   - combine: adds the new element to the gathered ones.
    ///   - act: gets the gathered elements of a burst.
    public init(
        coalesceWait: Duration, maxWait: Duration, firstAtOnce: Bool = false, timers: any TimerSource,
        on queue: any CallbackQueue,
        combine: @escaping @Sendable (inout Element, Element) -> Void, act: @escaping @Sendable (Element) -> Void
    ) {
        burst = Protected(Burst(coalesceWait: coalesceWait, maxWait: maxWait, firstAtOnce: firstAtOnce))
        self.firstAtOnce = firstAtOnce
        self.timers = timers
        self.queue = queue
        self.combine = combine
        self.act = act
    }

    deinit {
        // No reference to `self` may be made here, as `perform` does.
        if let gathered = cancel() { queue.enqueue { [act] in act(gathered) } }
    }

    /// Adds `element` to the burst, or begins a burst.
    public func add(_ element: Element) {
        let now = timers.now
        perform(burst.withLock { $0.added(element, at: now, combine: combine) })
    }

    /// Acts now on the gathered elements, if any.
    public func flush() {
        if let gathered = cancel() { perform(.act(gathered)) }
    }

    /// Drops the gathered elements.
    ///
    /// - Returns: the dropped elements, if any.
    @discardableResult
    public func cancel() -> Element? {
        let now = timers.now
        return burst.withLock { $0.take(at: now) }
    }

    private func fired(_ number: UInt64) {
        let now = timers.now
        perform(burst.withLock { $0.fired(number, at: now) })
    }

    private func perform(_ action: Burst<Element>.Action) {
        switch action {
        case .none:
            break
        case .wake(let number, let delay):
            // Weak: a distant timer must not keep the executor alive. Its `deinit` acts on the elements gathered by
            // then.
            timers.schedule(after: delay) { [weak self] in self?.fired(number) }
        case .act(let elements) where firstAtOnce:
            queue.enqueue { [weak self, act] in
                act(elements)
                self?.acted()
            }
        case .act(let elements):
            queue.enqueue { [act] in act(elements) }
        }
    }

    private func acted() {
        let now = timers.now
        burst.withLock { $0.acted(at: now) }
    }
}

/// One burst after the other: the gathered elements and the time when they are due. Pure.
struct Burst<Element: Sendable>: Sendable {
    /// ```
    /// idle ─added→ gathering ─fired, due / take→ idle
    ///               │     ↑
    ///               └added┘ (the due time moves, the timer does not: it looks at the due time when it fires)
    /// ```
    ///
    /// With the first at once, a pause follows each action:
    ///
    /// ```
    /// idle ─added→ pausing ─added→ gathering ─fired, due / take→ pausing
    ///               │   ↑
    ///               └───┘ acted (the pause begins anew); added, when the pause is over (an action at once)
    /// ```
    private enum Phase: Sendable {
        case idle
        /// `since`: the end of the last action, as far as it is known.
        case pausing(since: Duration)
        /// `since`: when the first element came; with the first at once, the beginning of the pause before.
        case gathering(Element, since: Duration, latest: Duration)
    }

    enum Action {
        case none
        /// Call `fired(number, …)` after the delay.
        case wake(number: UInt64, after: Duration)
        /// Act on these elements. With the first at once, call `acted` afterwards.
        case act(Element)
    }

    let coalesceWait: Duration
    let maxWait: Duration
    let firstAtOnce: Bool
    private var phase = Phase.idle
    /// The number of the gathering, so that the timer of an earlier one has no effect.
    private var number: UInt64 = 0

    init(coalesceWait: Duration, maxWait: Duration, firstAtOnce: Bool = false) {
        self.coalesceWait = coalesceWait
        self.maxWait = maxWait
        self.firstAtOnce = firstAtOnce
    }

    mutating func added(_ element: Element, at now: Duration, combine: (inout Element, Element) -> Void) -> Action {
        switch phase {
        case .idle where !firstAtOnce:
            return gather(element, since: now, at: now)
        case .pausing(let since) where now < since + min(coalesceWait, maxWait):
            return gather(element, since: since, at: now)
        case .idle, .pausing:
            phase = .pausing(since: now)
            return .act(element)
        case .gathering(var gathered, let since, _):
            // The phase gives the elements up first, so that `combine` appends in place and not to a copy.
            phase = .idle
            combine(&gathered, element)
            phase = .gathering(gathered, since: since, latest: now)
            // The timer may be late, but `maxWait` must hold.
            return now >= since + maxWait ? finish(at: now) : .none
        }
    }

    private mutating func gather(_ element: Element, since: Duration, at now: Duration) -> Action {
        number += 1
        phase = .gathering(element, since: since, latest: now)
        return .wake(number: number, after: min(now + coalesceWait, since + maxWait) - now)
    }

    mutating func fired(_ number: UInt64, at now: Duration) -> Action {
        guard number == self.number, case .gathering(_, let since, let latest) = phase else { return .none }
        let due = min(latest + coalesceWait, since + maxWait)
        return now >= due ? finish(at: now) : .wake(number: number, after: due - now)
    }

    /// The action has ended, perhaps long after it was due. Elements that came meanwhile do not begin another burst.
    mutating func acted(at now: Duration) {
        switch phase {
        case .idle: break
        case .pausing: phase = .pausing(since: now)
        case .gathering(let gathered, _, let latest): phase = .gathering(gathered, since: now, latest: latest)
        }
    }

    /// Ends the gathering without an action.
    mutating func take(at now: Duration) -> Element? {
        guard case .gathering(let gathered, _, _) = phase else { return nil }
        phase = firstAtOnce ? .pausing(since: now) : .idle
        return gathered
    }

    private mutating func finish(at now: Duration) -> Action { take(at: now).map { .act($0) } ?? .none }
}
