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
    ///   - start: where this caller begins. From the start, a caller for whom the start is kept no longer
    ///     (`Growing.keepsStart`) begins work of its own, which later callers join.
    ///   - limit: see `Growing`; that of the caller that leads counts.
    /// - Returns: the elements. They throw as `value(for:work:)` and `Growing.elements(from:)` do.
    public func elements<S: AsyncSequence & SendableMetatype>(
        for identifier: Key, from start: Growing<S.Element>.Start = .start, priority: OperationPriority = .normal,
        keeping limit: Int = 1024, work: @escaping @Sendable () async throws -> S
    ) -> some AsyncSequence<S.Element, any Error> & Sendable where S.AsyncIterator: SendableMetatype {
        elements(for: identifier, from: start, priority: priority) { SequenceWork(keeping: limit, work) }
    }

    /// `elements(for:work:)` for work that appends to a `Growing` of its own and delivers it.
    public func elements<W: Work, Element>(
        for identifier: Key, from start: Growing<Element>.Start = .start, priority: OperationPriority = .normal,
        make: @escaping @Sendable () -> W
    ) -> some AsyncSequence<Element, any Error> & Sendable where W.Value == Growing<Element> {
        SharedElements(start: start) { stay in
            try await self.wait(as: stay, accepts: { start == .now || $0.keepsStart }) {
                self.enqueue(identifier, waiter: $0, priority: priority, unless: { nil }, make: make)
            }
        }
    }
}

/// The elements of work that many callers follow, for one of them.
private struct SharedElements<Element: Sendable>: AsyncSequence, Sendable {
    let start: Growing<Element>.Start
    let join: @Sendable (AsyncStay<Growing<Element>>) async throws -> Growing<Element>

    func makeAsyncIterator() -> Iterator { Iterator(elements: self) }

    /// One caller's place. It leaves when the iterator goes.
    struct Iterator: AsyncIteratorProtocol {
        private final class Place {
            let stay = AsyncStay<Growing<Element>>()
            deinit { stay.end() }
        }

        let elements: SharedElements
        private let place = Place()
        private var reader: Growing<Element>.Reader?

        init(elements: SharedElements) { self.elements = elements }

        mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> Element? {
            if reader == nil { reader = try await elements.join(place.stay).reader(from: elements.start) }
            do {
                guard let element = try await reader?.next(isolation: actor) else {
                    place.stay.end()
                    return nil
                }
                return element
            } catch {
                place.stay.end()
                throw error
            }
        }
    }
}

/// Work that reads a sequence.
private final class SequenceWork<S: AsyncSequence & SendableMetatype>: Work
where S.Element: Sendable, S.AsyncIterator: SendableMetatype {
    private let work: @Sendable () async throws -> S
    private let elements: Growing<S.Element>
    private let task = Protected<Task<Void, Never>?>(nil)

    init(keeping limit: Int, _ work: @escaping @Sendable () async throws -> S) {
        self.work = work
        elements = Growing(keeping: limit)
    }

    func begin(_ completion: Completion<Growing<S.Element>>) {
        completion.deliver(elements)
        let started = Task { [work, elements] in
            do {
                for try await element in try await work() { elements.append(element) }
                // A sequence that is cancelled may just stop.
                try Task.checkCancellation()
                // First: a caller that has read all leaves, and the last to leave would cancel the operation.
                completion.finish()
                elements.end()
            } catch {
                completion.finish(.failure(error))
                elements.end(throwing: error)
            }
        }
        task.withLock { $0 = started }
    }

    func stop() {
        task.withLock { $0 }?.cancel()
        elements.end(throwing: CancellationError())
    }
}
