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

/// Who has a place in the table.
@usableFromInline
struct InFlightEntry: Sendable {
    @usableFromInline var operation: AnyOperation
    /// Those before it under the same name that have ended but are still being stopped. All of them must be gone before
    /// work for this name begins: the entry keeps them, and not only the dependency of `operation`, because that one
    /// may be cancelled before they are gone.
    @usableFromInline var predecessors: [AnyOperation] = []

    @inlinable
    init(_ operation: AnyOperation) {
        self.operation = operation
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
    @inlinable
    static func insert(
        _ operation: AnyOperation, as name: InFlightName<Key>, replacing ended: AnyOperation?, in table: inout Table
    ) {
        var entry = InFlightEntry(operation)
        entry.predecessors = table[name]?.predecessors ?? []
        if let ended { entry.predecessors.append(ended) }
        for predecessor in entry.predecessors { operation.addDependency(predecessor, rule: .end) }
        table[name] = entry
    }

    /// It is gone. An operation that has its place by now keeps it; those before it that are still being stopped get it
    /// back.
    @inlinable
    func remove(_ operation: AnyOperation, from name: InFlightName<Key>) {
        table.withLock { table in
            guard var entry = table[name] else { return }
            entry.predecessors.removeAll { $0 === operation }
            if entry.operation === operation {
                guard let predecessor = entry.predecessors.popLast() else {
                    table[name] = nil
                    return
                }
                entry.operation = predecessor
            }
            table[name] = entry
        }
    }
}
