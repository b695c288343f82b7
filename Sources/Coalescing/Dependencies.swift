/// The condition that a dependency must meet before the dependent operation may run.
public enum DependencyRule: Sendable {
    /// The dependency must succeed; its failure or cancellation is passed on as `OperationError.dependency`.
    case success
    /// The dependency must have ended, with or without success.
    case end
}

extension AnyOperation {
    /// Delays `execute()` until `dependency` has ended. The dependency may be of any kind, on any manager, in flight or
    /// already over. This call does not start it.
    ///
    /// - Returns: false, and nothing changed, if it is too late (the operation was started, enqueued or has ended), or
    ///   if `dependency` waits for this very operation: then neither would ever end.
    @discardableResult
    public final func addDependency(_ dependency: AnyOperation, rule: DependencyRule = .success) -> Bool {
        // Kept beyond the lock: if one were released under it, its end would call back waiters.
        var visited: [AnyOperation] = []
        let isExpected = Self.graph.withLock { _ in
            guard dependency !== self, !dependency.waits(for: self, &visited) else { return false }
            return state.withLock { state in
                guard state.lifecycle.expectDependency() else { return false }
                state.ties.append(.dependency(WeakOperation(dependency)))
                return true
            }
        }
        guard isExpected else { return false }
        // Weak: a long-lived dependency must not keep operations alive that were cancelled while they waited for it.
        dependency.whenEnded { [weak self] outcome in
            self?.dependencyEnded(outcome, rule: rule)
        }
        return true
    }

    /// Held while a dependency is added: two threads cannot close a cycle from both ends.
    private static let graph = Protected(())

    private final func dependencyEnded(_ outcome: OperationError?, rule: DependencyRule) {
        if let outcome, rule == .success {
            endFromOutside(with: .dependency(outcome))
        } else {
            becomeReady { $0.dependencyMet() }
        }
    }

    /// Calls `sequel` once no caller can find the operation any longer; at once if that is so already. Never under a
    /// lock.
    package final func whenEnded(_ sequel: @escaping @Sendable (OperationError?) -> Void) {
        let outcome = state.withLock { state in
            let outcome = state.lifecycle.finalOutcome
            if outcome == nil { state.ties.append(.sequel(sequel)) }
            return outcome
        }
        if let outcome { sequel(outcome) }
    }

    private final func waits(for other: AnyOperation, _ visited: inout [AnyOperation]) -> Bool {
        state.withLock { $0.ties }.contains { tie in
            guard case .dependency(let dependency) = tie, let operation = dependency.operation else { return false }
            visited.append(operation)
            return operation === other || operation.waits(for: other, &visited)
        }
    }
}
