/// A value that goes on growing: elements that one writer appends and any number of readers follow, each at its own
/// pace, from the start or from now. It is the value of work that streams (`Work<Growing<Element>>`), and needs no
/// operation.
///
/// **What is kept.** The latest `limit` elements, for readers that are behind and for those that come late. Until there
/// are more, a reader can follow from the start. From then on `keepsStart` is false: who asks a manager for the elements
/// from the start begins work of its own, and a reader that falls back further than that gets `GrowingError.behind`. No
/// reader misses an element unnoticed, and none holds up the writer.
///
/// Every method may be called on any thread.
public final class Growing<Element: Sendable>: Sendable {
    /// Where a reader begins.
    public enum Start: Sendable {
        /// With the first element of all.
        case start
        /// With the next one that arrives.
        case now
    }

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
    public var keepsStart: Bool { state.withLock { $0.count <= limit } }

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

    /// Ends the value: readers that have read all get the end, or `error`. Later ends are ignored.
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
        reader(from: start)
    }

    func reader(from start: Start) -> Reader {
        Reader(growing: self, next: start == .start ? 0 : state.withLock { $0.count })
    }

    /// One reader's place.
    struct Reader: AsyncSequence, AsyncIteratorProtocol, Sendable {
        let growing: Growing
        /// The number of the element that it reads next.
        var next: Int

        func makeAsyncIterator() -> Reader { self }

        mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> Element? {
            while true {
                try Task.checkCancellation()
                if let step = growing.step(next) {
                    next += 1
                    return try step.get()
                }
                await growing.sleep(until: next)
            }
        }
    }

    /// Element `number`, or the end; `nil` if it has not come yet.
    private func step(_ number: Int) -> Result<Element?, any Error>? {
        state.withLock { state in
            if number < state.count - limit { return .failure(GrowingError.behind) }
            if number < state.count { return .success(state.kept[number % limit]) }
            return state.end.map { end in end.map { nil } }
        }
    }

    /// Returns when there may be an element `number`, or when the task is cancelled.
    private func sleep(until number: Int) async {
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
