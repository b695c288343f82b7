/// A recipe: work together with what it depends on. Resolve → connect → fetch are three pieces of work, each shared on
/// its own; the task for the last one knows how to get the one before it, and makes its work of the value that it gets.
///
///     let connect = OperationTask(after: { resolvers.enqueue(host, waiter: nil) { Resolve(host) } }) { addresses in
///         Connect(to: addresses)
///     }
///     let enqueued = connections.enqueue(host, waiter: waiter, task: connect)
///
/// The dependencies are what the first closure asks for: one `enqueue` or, as a tuple, several, of any managers, so
/// dependencies are shared too. The closure is called only if a new operation is needed, never under a lock. The work
/// takes no slot while it waits.
///
/// A dependency that fails, is cancelled or is refused is passed on as `OperationError.dependency`, and the work is never
/// made; a task made with `afterEnd:` gets results instead, and decides itself. Two tasks that wait for each other both
/// end with `.dependency`.
public struct OperationTask<W: Work>: Sendable {
    @usableFromInline let make: @Sendable () -> WorkOperation<W>
    @usableFromInline let addDependencies: @Sendable (WorkOperation<W>) -> Void

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
        self.make = { WorkOperation(.dependent(DependentWork())) }
        addDependencies = { operation in
            let asked = dependencies()
            operation.makeWork { try? make(repeat (each asked).end) }
            repeat operation.wait(for: each asked, rule: rule)
        }
    }
}

/// Work that is made when its dependencies have ended.
@usableFromInline
final class DependentWork<W: Work>: Sendable {
    private struct State: Sendable {
        var make: (@Sendable () -> W?)?
        var work: W?
    }

    private let state = Protected(State())

    /// The work, once it was made.
    var work: W? { state.withLock { $0.work } }

    func makeLater(_ make: @escaping @Sendable () -> W?) { state.withLock { $0.make = make } }

    /// Makes the work; once. Never under a lock.
    @usableFromInline
    func make() -> W? {
        let make = state.withLock { $0.make.take() }
        let work = make?()
        state.withLock { $0.work = work }
        return work
    }
}

extension WorkOperation {
    func makeWork(_ make: @escaping @Sendable () -> W?) {
        if case .dependent(let work) = plan { work.makeLater(make) }
    }

    /// Adds what was asked for as a dependency. If there is none, or if it waits for this very operation, this one ends.
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
