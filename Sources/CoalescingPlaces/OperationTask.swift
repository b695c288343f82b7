public import Coalescing

/// A recipe: work together with its dependencies. Resolve → connect → fetch are three pieces of work, each shared on
/// its own; the task for the last one knows how to get the one before it, and makes its work of the value that it gets.
///
///     let connect = OperationTask(after: { resolvers.enqueue(host, waiter: nil) { Resolve(host) } }) { addresses in
///         Connect(to: addresses)
///     }
///     let connection = try await connections.value(for: host, task: connect)
///
/// The first closure asks for the dependencies: by one `enqueue` or, as a tuple, several, of any managers, so
/// dependencies are shared too. The closure is called only if a new operation is needed, never under a lock. The work
/// takes no slot while it waits.
///
/// A dependency that fails, is cancelled or is refused is passed on as `OperationError.dependency`, and the work is never
/// made; a task made with `afterEnd:` gets results instead, and decides itself. Two tasks that wait for each other both
/// end with `.dependency`.
public struct OperationTask<W: Work>: Sendable {
    let addDependencies: @Sendable (WorkOperation<W>, DependentWork<W>) -> Void

    /// Work that depends on the success of others.
    /// - Parameter make: makes the work of the values, in the order of the dependencies.
    public init<each Op: SharedOperation>(
        after dependencies: @escaping @Sendable () -> (repeat Enqueued<each Op, Never>),
        make: @escaping @Sendable (repeat (each Op).Value) -> W
    ) {
        self.init(rule: .success, dependencies) { (results: repeat Result<(each Op).Value, OperationError>) in
            try make(repeat (each results).get())
        }
    }

    /// Work that begins when others have ended, whether they have a value or not.
    /// - Parameter make: makes the work of the results, in the order of the dependencies.
    public init<each Op: SharedOperation>(
        afterEnd dependencies: @escaping @Sendable () -> (repeat Enqueued<each Op, Never>),
        make: @escaping @Sendable (repeat Result<(each Op).Value, OperationError>) -> W
    ) {
        self.init(rule: .end, dependencies, make: make)
    }

    private init<each Op: SharedOperation>(
        rule: DependencyRule, _ dependencies: @escaping @Sendable () -> (repeat Enqueued<each Op, Never>),
        make: @escaping @Sendable (repeat Result<(each Op).Value, OperationError>) throws -> W
    ) {
        addDependencies = { operation, work in
            let asked = dependencies()
            work.makeLater { try? make(repeat (each asked).end) }
            repeat operation.wait(for: each asked, rule: rule)
        }
    }
}

extension OperationQueueManager {
    /// The value of a task's work, which callers share as with `value(for:work:)`. The task's dependencies are asked for
    /// only if no such work is in flight.
    ///
    /// - Parameter unless: as in `value(for:work:)`.
    /// - Throws: as `value(for:work:)`; `OperationError.dependency` if a dependency brought no value.
    public nonisolated(nonsending) func value<W: Work>(
        for identifier: Key, priority: OperationPriority = .normal, unless: () -> W.Value? = { nil },
        task: OperationTask<W>
    ) async throws -> W.Value {
        try await wait {
            enqueue(identifier, waiter: $0, priority: priority, unless: unless, task: task)
        }.value
    }

    /// `enqueue` of work together with its dependencies. They are asked for only if a new operation is needed, after
    /// the lock.
    public func enqueue<W: Work, Found>(
        _ identifier: Key, waiter: Waiter<W.Value>?, priority: OperationPriority = .normal,
        unless: () -> Found? = { nil as Never? }, task: OperationTask<W>
    ) -> Enqueued<WorkOperation<W>, Found> {
        let dependent = DependentWork<W>()
        return enqueue(
            identifier, waiter: waiter, priority: priority, unless: unless,
            make: { WorkOperation<W>(.cancel, stop: dependent.stop) }, submits: false,
            start: { operation, entry in
                task.addDependencies(operation, dependent)
                operation.lead(dependent, from: entry, at: gate) { $1.begin($0) }
            })
    }
}

/// Work that is made when its dependencies have ended.
final class DependentWork<W: Work>: Sendable {
    private struct State: Sendable {
        var make: (@Sendable () -> W?)?
        var work: W?
    }

    private let state = Protected(State())

    func makeLater(_ make: @escaping @Sendable () -> W?) { state.withLock { $0.make = make } }

    func begin(_ operation: WorkOperation<W>) {
        let make = state.withLock { $0.make.take() }
        guard let work = make?() else { return _ = operation.finish() }
        state.withLock { $0.work = work }
        operation.lastLeavePolicy = work.lastLeavePolicy
        work.begin(Completion(operation))
    }

    func stop() { state.withLock { $0.work }?.stop() }
}

extension WorkOperation {
    /// Adds the operation that was asked for as a dependency. If it was refused, or waits for this very operation, this
    /// one ends.
    func wait<Op: SharedOperation>(for asked: Enqueued<Op, Never>, rule: DependencyRule) {
        if let operation = asked.operation {
            if !addDependency(operation, rule: rule) { endFromOutside(with: .dependency(.abandoned)) }
        } else if case .refused(let refusal, _) = asked, rule == .success {
            endFromOutside(with: .dependency(.failed(refusal)))
        }
    }
}

extension Enqueued where Op: SharedOperation, Found == Never {
    /// How the operation ended, for one that depends on it.
    var end: Result<Op.Value, OperationError> {
        if case .refused(let refusal, _) = self { return .failure(.failed(refusal)) }
        guard let operation, operation.error == nil, let value = operation.shared.value else {
            return .failure(operation?.error ?? .abandoned)
        }
        return .success(value)
    }
}
