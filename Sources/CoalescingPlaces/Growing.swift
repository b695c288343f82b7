public import Coalescing

/// A value that goes on growing: elements that one writer appends and any number of readers follow, each at its own
/// pace, from the start or from now. It is the value of work that streams (`Work<Growing<Element>>`), and needs no
/// operation.
///
/// **Memory.** The value keeps its latest `limit` elements, for readers that are behind and for readers that come late.
/// Until there are more, a reader can follow from the start. From then on, a caller that asks a manager for the elements
/// from the start begins work of its own, and a reader whose next element is kept no longer gets `GrowingError.behind`.
/// No reader misses an element unnoticed, and none holds up the writer.
///
/// Every method may be called on any thread.
public final class Growing<Element: Sendable>: Sendable {
    /// Where a reader begins: with the first element of all, or with the next one that arrives.
    public enum Start: Sendable { case start, now }

    /// ```
    /// growing ─end→ ended
    /// ```
    private struct State: Sendable {
        /// A ring of the latest elements: element `n` is at `n % limit`.
        var kept: [Element] = []
        /// How many elements have been appended so far.
        var count = 0
        var end: Result<Void, any Error>?
        /// How many elements the fastest reader has read.
        var read = 0
        /// The writer, while it waits for room.
        var writer: CheckedContinuation<Void, Never>?
        var sleepers: [Int: CheckedContinuation<Void, Never>] = [:]
        /// How often a reader has slept so far, to name the sleepers.
        var naps = 0
    }

    private let state = Protected(State())
    private let limit: Int

    /// - Parameter limit: how many elements are kept, at least one. The default bounds the number, not the size: with
    ///   large elements, choose a smaller one.
    public init(keeping limit: Int = 1024) {
        self.limit = max(1, limit)
    }

    /// Whether a reader can still follow from the start: no element was dropped.
    var keepsStart: Bool { state.withLock { $0.count <= limit } }

    var count: Int { state.withLock { $0.count } }

    /// Appends an element and wakes the readers. Ignored after the end.
    public func append(_ element: Element) {
        wake { state in
            guard state.end == nil else { return }
            if state.kept.count < limit {
                state.kept.append(element)
            } else {
                state.kept[state.count % limit] = element
            }
            state.count += 1
        }
    }

    /// Ends the value: readers that have read all get the end, or `error`. Later ends are ignored. One that
    /// `Completion.deliver(growing:)` handed out ends with its work.
    public func end(throwing error: (any Error)? = nil) {
        wake { state in
            if state.end == nil { state.end = error.map { .failure($0) } ?? .success(()) }
        }
    }

    private func wake(_ change: (inout State) -> Void) {
        let sleepers = state.withLock { state in
            change(&state)
            defer { if !state.sleepers.isEmpty { state.sleepers = [:] } }
            return state.sleepers
        }
        for sleeper in sleepers.values { sleeper.resume() }
    }

    /// The elements, for one reader.
    ///
    /// They throw `CancellationError` if the task is cancelled, `GrowingError.behind` if the next element is kept no
    /// longer, or the error with which the value ended.
    public func elements(from start: Start = .start) -> some AsyncSequence<Element, any Error> & Sendable {
        let first = start == .start ? 0 : count
        return Elements { (self, first, nil) }
    }

    /// Element `number`, or the end; `nil` if it has not come yet.
    func step(_ number: Int) -> Result<Element?, any Error>? {
        let (step, writer) = state.withLock {
            state -> (Result<Element?, any Error>?, CheckedContinuation<Void, Never>?) in
            if number < state.count - limit { return (.failure(GrowingError.behind), nil) }
            guard number < state.count else {
                // This reader needs none of the elements before, even if it has just joined and the faster one has left.
                state.read = max(state.read, number)
                return (state.end.map { end in end.map { nil } }, state.writer.take())
            }
            state.read = max(state.read, number + 1)
            return (.success(state.kept[number % limit]), state.writer.take())
        }
        writer?.resume()
        return step
    }

    /// Returns when the fastest reader has not yet to read as many elements as are kept, or when the task is cancelled.
    /// For one writer.
    func waitForRoom() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    if state.count - state.read < limit || Task.isCancelled { return true }
                    state.writer = continuation
                    return false
                }
                if isThere { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.writer.take() }?.resume()
        }
    }

    /// Returns when there may be an element `number`, or when the task is cancelled.
    func sleep(until number: Int) async {
        let nap = state.withLock { state in
            state.naps += 1
            return state.naps
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDue = state.withLock { state in
                    if number < state.count || state.end != nil || Task.isCancelled { return true }
                    state.sleepers[nap] = continuation
                    return false
                }
                if isDue { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: nap) }?.resume()
        }
    }
}

/// Why a reader of a growing value gets no more.
public enum GrowingError: Error, Sendable {
    /// The reader was slower than the value grew: the element that it would read next is kept no longer.
    case behind
}

extension Completion {
    /// Hands out a value that goes on growing, and ends it when the work has ended, with the same error.
    @discardableResult
    public func deliver<Element>(growing: Growing<Element>) -> Bool where Value == Growing<Element> {
        operation.deliver(growing: growing)
    }
}

extension CoalescibleOperation {
    func deliver<Element>(growing: Growing<Element>) -> Bool where Value == Growing<Element> {
        // After the end: a reader that has read all leaves, and the last to leave would cancel the operation.
        whenEnded { growing.end(throwing: $0?.thrown) }
        return deliver(growing)
    }
}

extension OperationQueueManager {
    /// Joins or starts as `value(for:make:)` does, for a value that goes on growing, and calls `body` with it. The task
    /// follows the operation until `body` returns or throws, and then leaves, so that a stream without readers can be
    /// stopped.
    ///
    /// A task that is cancelled while `body` runs leaves when `body` has ended, as with any `async` function.
    ///
    /// - Parameter body: runs on the caller's actor, if there is one.
    /// - Returns: the result of `body`.
    /// - Throws: as `value(for:make:)`, and the errors of `body`.
    public nonisolated(nonsending) func withValue<Op: SharedOperation, Outcome>(
        for identifier: Key, priority: OperationPriority = .normal, make: () -> Op,
        body: nonisolated(nonsending) (Op.Value) async throws -> Outcome
    ) async throws -> Outcome {
        let (value, stay) = try await wait {
            enqueue(identifier, waiter: $0, priority: priority, unless: { nil }, make: make)
        }
        defer { stay?.leave() }
        return try await body(value)
    }

    /// The elements of the sequence that `work` makes, which is read once for all callers that ask for `identifier` at
    /// the same time. It is read in a task, as fast as its fastest reader reads, but for the elements that are kept.
    ///
    ///     for try await line in logs.elements(for: "api", work: { try await server.lines(of: "api") }) { show(line) }
    ///
    /// A caller joins with its first step and leaves with the end of its loop, or when its task is cancelled; when all
    /// have left, the task of `work` is cancelled.
    ///
    /// - Parameters:
    ///   - start: where this caller begins. From the start, a caller for whom the start is kept no longer begins work of
    ///     its own, which later callers join.
    ///   - limit: see `Growing`; that of the caller that leads counts.
    /// - Returns: the elements. They throw as `value(for:work:)` and `Growing.elements(from:)` do.
    public func elements<S: AsyncSequence & SendableMetatype>(
        for identifier: Key, from start: Growing<S.Element>.Start = .start, priority: OperationPriority = .normal,
        keeping limit: Int = 1024, work: @escaping @Sendable () async throws -> S
    ) -> some AsyncSequence<S.Element, any Error> & Sendable where S.AsyncIterator: SendableMetatype {
        elements(from: start) {
            self.enqueue(identifier, waiter: $0, priority: priority, unless: { nil }, doing: work) { operation, work in
                let elements = Growing<S.Element>(keeping: limit)
                _ = operation.deliver(growing: elements)
                operation.run {
                    for try await element in try await work() {
                        await elements.waitForRoom()
                        elements.append(element)
                    }
                    // A sequence that is cancelled may just stop.
                    try Task.checkCancellation()
                    return elements
                }
            }
        }
    }

    /// `elements(for:work:)` for work that appends to a `Growing` of its own
    /// (`Completion.deliver(growing:)`).
    public func elements<W: Work, Element>(
        for identifier: Key, from start: Growing<Element>.Start = .start, priority: OperationPriority = .normal,
        make: @escaping @Sendable () -> W
    ) -> some AsyncSequence<Element, any Error> & Sendable where W.Value == Growing<Element> {
        elements(from: start) {
            self.enqueue(identifier, waiter: $0, priority: priority, unless: { nil }, make: make)
        }
    }

    private func elements<Op: SharedOperation, Element>(
        from start: Growing<Element>.Start,
        enqueue: @escaping @Sendable (Waiter<Growing<Element>>) -> Enqueued<Op, Growing<Element>>
    ) -> Elements<Element> where Op.Value == Growing<Element> {
        Elements {
            let first = First()
            let accepts: @Sendable (Growing<Element>) -> Bool = { growing in
                first.number.withLock { number in
                    number = start == .now ? growing.count : growing.keepsStart ? 0 : nil
                    return number != nil
                }
            }
            let (growing, stay) = try await self.wait(accepts: accepts, enqueue: enqueue)
            guard let number = first.number.withLock({ $0 }) else {
                try Task.checkCancellation()
                // The work had dropped the start before it handed out the value.
                throw GrowingError.behind
            }
            return (growing, number, stay)
        }
    }
}

/// The number of the first element for a reader that has joined: that of the next element when it joined, or when the
/// value was handed out. `nil` if the start was kept no longer.
private final class First: Sendable {
    let number = Protected<Int?>(nil)
}

/// The elements of a growing value, for one reader, which may have to join the work first.
private struct Elements<Element: Sendable>: AsyncSequence, AsyncIteratorProtocol, Sendable {
    typealias Join = @Sendable () async throws -> (Growing<Element>, first: Int, AsyncStay<Growing<Element>>?)

    /// ```
    /// new ─first step→ reading ─end, error, cancelled→ over
    /// ```
    private enum Phase: Sendable {
        case new
        /// `next`: the number of the element that is read next.
        case reading(Place, next: Int)
        case over
    }

    /// Leaves when the last copy of the iterator goes.
    private final class Place: Sendable {
        let growing: Growing<Element>
        let stay: AsyncStay<Growing<Element>>?

        init(_ growing: Growing<Element>, _ stay: AsyncStay<Growing<Element>>?) {
            (self.growing, self.stay) = (growing, stay)
        }

        deinit { stay?.leave() }
    }

    let join: Join
    private var phase = Phase.new

    init(join: @escaping Join) { self.join = join }

    func makeAsyncIterator() -> Elements { self }

    mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> Element? {
        let before = phase
        // After an error there are no more elements.
        phase = .over
        let (place, number): (Place, Int)
        switch before {
        case .new:
            let (growing, first, stay) = try await join()
            (place, number) = (Place(growing, stay), first)
        case .reading(let current, let next): (place, number) = (current, next)
        case .over: return nil
        }
        while true {
            try Task.checkCancellation()
            if let step = place.growing.step(number) {
                guard let element = try step.get() else { return nil }
                phase = .reading(place, next: number + 1)
                return element
            }
            await place.growing.sleep(until: number)
        }
    }
}
