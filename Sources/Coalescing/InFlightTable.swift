/// The name by which an operation in flight is found: its identifier and its class.
@usableFromInline
struct InFlightName<Key: Hashable & Sendable>: Hashable, Sendable {
    @usableFromInline let identifier: Key
    @usableFromInline let kind: ObjectIdentifier
    /// The identifier's hash, computed once for both the shard and the table.
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

/// One place in the table: the operation that is found there, and its predecessors.
@usableFromInline
struct InFlightEntry: Sendable {
    @usableFromInline var operation: AnyOperation
    /// Earlier operations under the same name that have ended but are still being stopped. All of them must be gone
    /// before work for this name begins. The dependencies of `operation` say so too, but `operation` may be cancelled
    /// before they are gone, so the entry also keeps them.
    @usableFromInline var predecessors: [AnyOperation] = []

    @inlinable
    init(_ operation: AnyOperation) {
        self.operation = operation
    }

    /// Removes `gone` from this place. If it was the operation that is found, the latest predecessor is found instead.
    /// - Returns: whether the place is empty.
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

    /// Puts a new operation in the place of the present one, if any. The new operation begins only when the ended
    /// operations of this place are gone.
    /// - Parameters:
    ///   - entry: the present entry of the place.
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

    /// Removes an operation that is gone. If a newer operation has its place by now, that one keeps it; otherwise the
    /// latest predecessor that is still being stopped gets it back.
    @inlinable
    func remove(_ operation: AnyOperation, from name: InFlightName<Key>) {
        table.withLock { table in
            guard let place = table.index(forKey: name) else { return }
            if table.values[place].remove(operation) { table.remove(at: place) }
        }
    }
}
