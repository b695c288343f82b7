/// A manager's record of one operation in flight: under which names it can be found, and what to undo when it ends. Owned by the
/// operation, which thereby keeps its manager alive as long as it is in flight.
final class Enrolment<Key: Hashable & Sendable>: Operation.Custodian {
    let manager: OperationQueueManager<Key>
    /// Where it is counted.
    let shard: Shard<Key>
    /// Nil once the operation has ended.
    private let names: Protected<[InFlightName<Key>]?>

    init(manager: OperationQueueManager<Key>, shard: Shard<Key>, name: InFlightName<Key>?) {
        self.manager = manager
        self.shard = shard
        names = Protected(name.map { [$0] } ?? [])
    }

    /// The class it is filed under; nil for a plain operation.
    var kind: ObjectIdentifier? {
        names.withLock { $0?.first?.kind }
    }

    /// Remembers to remove `name`. False when the end has come already: the caller removes it.
    func add(_ name: InFlightName<Key>) -> Bool {
        names.withLock { names in
            names?.append(name)
            return names != nil
        }
    }

    func operationIsReady(_ operation: Operation) {
        manager.operationIsReady(operation)
    }

    func forget(_ operation: Operation, outcome: OperationError?) {
        switch outcome {
        case nil: shard.counters.finished.count()
        case .cancelled: shard.counters.cancelled.count()
        case .released, .abandoned, .failed, .dependency: shard.counters.failed.count()
        }
        let names = names.withLock { names in
            defer { names = nil }
            return names ?? []
        }
        for name in names { manager.shard(for: name.hash).remove(operation, from: name) }
    }

    func releaseSlot(of operation: Operation) {
        manager.releaseSlot(of: operation)
    }

    func priorityRaised(of operation: Operation) {
        manager.priorityRaised(of: operation)
    }

    func waitersReleased(_ count: Int) {
        shard.counters.released.count(count)
    }
}
