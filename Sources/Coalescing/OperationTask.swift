/// A recipe: an operation together with its dependencies. Resolve → connect → fetch are three operations, each reusable
/// alone; the task for the last one knows how to get the one before it.
///
///     let connect = OperationTask { ConnectOperation(host) }
///         .after { resolvers.enqueue(host, waiter: nil, make: { ResolveOperation(host) }).operation }
///
/// A dependency is the operation that its closure returns: usually from another manager's `enqueue`, so that
/// dependencies coalesce too. The closure is called each time the task makes an operation, never under a lock, so it
/// may call any manager.
public struct OperationTask<Op: AnyOperation>: Sendable {
    @usableFromInline let makeAlone: @Sendable () -> Op
    private var dependencies: [Dependency] = []

    private struct Dependency: Sendable {
        let rule: DependencyRule
        let operation: @Sendable () -> AnyOperation?
    }

    /// - Parameter make: returns a new operation with each call, since an operation runs once.
    public init(_ make: @escaping @Sendable () -> Op) {
        makeAlone = make
    }

    /// This task with one more dependency. If `dependency` returns `nil`, there is no such operation (its queue was
    /// full, say): the dependent operation then ends with `.dependency(.cancelled)`, or does not wait for it if the
    /// rule is `.end`.
    public func after(
        rule: DependencyRule = .success, _ dependency: @escaping @Sendable () -> AnyOperation?
    ) -> OperationTask {
        var task = self
        task.dependencies.append(Dependency(rule: rule, operation: dependency))
        return task
    }

    /// A new operation that waits for its dependencies. Start it or give it to a manager.
    public func make() -> Op {
        let operation = makeAlone()
        addDependencies(operation)
        return operation
    }

    @usableFromInline
    func addDependencies(_ operation: Op) {
        for dependency in dependencies {
            if let other = dependency.operation() {
                operation.addDependency(other, rule: dependency.rule)
            } else if dependency.rule == .success {
                operation.endFromOutside(with: .dependency(.cancelled))
            }
        }
    }
}
