/// What an operation in flight is found by: its identifier and its class.
@usableFromInline
struct InFlightName<Key: Hashable & Sendable>: Hashable, Sendable {
    @usableFromInline let identifier: Key
    @usableFromInline let kind: ObjectIdentifier
    /// The identifier is hashed once, for the shard and the table both.
    @usableFromInline let hash: Int

    @inlinable
    init(_ identifier: Key, _ kind: ObjectIdentifier) {
        self.identifier = identifier
        self.kind = kind
        hash = identifier.hashValue
    }

    @inlinable
    static func == (a: Self, b: Self) -> Bool {
        a.hash == b.hash && a.kind == b.kind && a.identifier == b.identifier
    }

    @inlinable
    func hash(into hasher: inout Hasher) {
        hasher.combine(hash)
    }
}

/// One place in the table: the operation that is found there, and those before it.
@usableFromInline
struct InFlightEntry: Sendable {
    @usableFromInline var operation: AnyOperation
    /// Operations before it under the same name that have ended but are still being stopped. All of them must be gone
    /// before work for this name begins: the entry keeps them, beside what `operation` depends on, because `operation`
    /// may be cancelled before they are gone.
    @usableFromInline var predecessors: [AnyOperation] = []

    @inlinable
    init(_ operation: AnyOperation) {
        self.operation = operation
    }

    /// Takes `gone` off this place; if it was the one that is found, the last one before it is found instead.
    /// - Returns: whether nobody is left.
    @inlinable
    mutating func remove(_ gone: AnyOperation) -> Bool {
        if !predecessors.isEmpty { predecessors.removeAll { $0 === gone } }
        guard operation === gone else { return false }
        guard let predecessor = predecessors.popLast() else { return true }
        operation = predecessor
        return false
    }
}

/// One part of the in-flight table, under a lock of its own.
@usableFromInline
final class InFlightShard<Key: Hashable & Sendable>: Sendable {
    @usableFromInline typealias Table = [InFlightName<Key>: InFlightEntry]

    @usableFromInline let table = Protected<Table>([:])
    @usableFromInline let counters = ShardCounters()

    init() {}

    /// Puts a new operation in the place of the one there, if any. It begins only when those that have ended there are
    /// gone.
    /// - Parameters:
    ///   - entry: what has the place now.
    ///   - ended: whether the operation of `entry` has ended, and must be gone first too.
    @inlinable
    static func insert(
        _ operation: AnyOperation, as name: InFlightName<Key>, over entry: InFlightEntry?, ended: Bool,
        in table: inout Table
    ) {
        var new = InFlightEntry(operation)
        if let entry {
            new.predecessors = entry.predecessors
            if ended { new.predecessors.append(entry.operation) }
            for predecessor in new.predecessors { operation.addDependency(predecessor, rule: .end) }
        }
        table.updateValue(new, forKey: name)
    }

    /// Removes an operation that is gone. Another that has its place by now keeps it; otherwise the last one before it
    /// that is still being stopped gets it back.
    @inlinable
    func remove(_ operation: AnyOperation, from name: InFlightName<Key>) {
        table.withLock { table in
            guard let place = table.index(forKey: name) else { return }
            if table.values[place].remove(operation) { table.remove(at: place) }
        }
    }
}
