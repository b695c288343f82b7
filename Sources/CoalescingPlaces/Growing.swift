public import Coalescing

/// A value that goes on growing: elements that one writer appends and any number of readers follow, each at its own
/// pace, from the start or from now. It is the value of work that streams (`Work<Growing<Element>>`), and needs no
/// operation.
///
/// **What is kept.** The latest `limit` elements, for readers that are behind and for those that come late. Until there
/// are more, a reader can follow from the start. From then on, who asks a manager for the elements from the start begins
/// work of its own, and a reader that falls back further than that gets `GrowingError.behind`. No
/// reader misses an element unnoticed, and none holds up the writer.
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
        Elements(next: start == .start ? 0 : count) { (self, nil) }
    }

    /// Element `number`, or the end; `nil` if it has not come yet.
    func step(_ number: Int) -> Result<Element?, any Error>? {
        state.withLock { state in
            if number < state.count - limit { return .failure(GrowingError.behind) }
            if number < state.count { return .success(state.kept[number % limit]) }
            return state.end.map { end in end.map { nil } }
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
    /// The elements of the sequence that `work` makes, which is read once for all callers that ask for `identifier` at
    /// the same time. It is read in a task, as fast as it gives, however slow a reader is.
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
                    for try await element in try await work() { elements.append(element) }
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
        Elements(next: start == .start ? 0 : nil) {
            let (growing, stay) = try await self.wait(accepts: { start == .now || $0.keepsStart }, enqueue: enqueue)
            return (growing, stay)
        }
    }
}

/// The elements of a growing value, for one reader, who may have to join the work first.
private struct Elements<Element: Sendable>: AsyncSequence, AsyncIteratorProtocol, Sendable {
    /// Leaves when the last copy of the iterator goes.
    private final class Place: Sendable {
        let growing: Growing<Element>
        let stay: AsyncStay<Growing<Element>>?

        init(_ growing: Growing<Element>, _ stay: AsyncStay<Growing<Element>>?) {
            (self.growing, self.stay) = (growing, stay)
        }

        deinit { stay?.leave() }
    }

    /// The number of the element that is read next; `nil` before the reader has joined, if it reads from then on.
    var next: Int?
    let join: @Sendable () async throws -> (Growing<Element>, AsyncStay<Growing<Element>>?)
    private var place: Place?

    init(
        next: Int?, join: @escaping @Sendable () async throws -> (Growing<Element>, AsyncStay<Growing<Element>>?)
    ) {
        (self.next, self.join) = (next, join)
    }

    func makeAsyncIterator() -> Elements { self }

    mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> Element? {
        if place == nil {
            let (growing, stay) = try await join()
            place = Place(growing, stay)
        }
        guard let growing = place?.growing else { return nil }
        let number = next ?? growing.count
        next = number + 1
        do {
            while true {
                try Task.checkCancellation()
                if let step = growing.step(number) {
                    let element = try step.get()
                    if element == nil { place = nil }
                    return element
                }
                await growing.sleep(until: number)
            }
        } catch {
            place = nil
            throw error
        }
    }
}
