import Synchronization

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

/// One part of the in-flight table, under a lock of its own.
@usableFromInline
final class Shard<Key: Hashable & Sendable>: Sendable {
    @usableFromInline let table = Protected<[InFlightName<Key>: Operation]>([:])
    @usableFromInline let counters = ShardCounters()

    init() {}

    /// Takes `operation` off the table unless another has its place by now.
    func remove(_ operation: Operation, from name: InFlightName<Key>) {
        table.withLock { table in
            if table[name] === operation { table[name] = nil }
        }
    }
}
