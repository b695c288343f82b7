import Bytes
import Libevent

/// How many connections each client has, over all loops. Counted only while `max-connections-per-client` is set, so a
/// client without connections takes no memory. Any thread.
struct ClientCounts: ~Copyable, Sendable {
    private static let shardCount = 16

    private let shards = FixedArray(count: ClientCounts.shardCount) { _ in Guarded<[IPAddress: Int]>([:]) }

    /// Counts a connection of `client` more.
    /// - Returns: false, and nothing is counted, if the client has `most` already.
    func add(_ client: IPAddress, upTo most: Int) -> Bool {
        shards[shard(of: client)].withLock { counts in
            let count = counts[client, default: 0]
            guard count < most else { return false }
            counts[client] = count + 1
            return true
        }
    }

    /// Counts a connection less, which `add` has counted.
    func remove(_ client: IPAddress) {
        shards[shard(of: client)].withLock { counts in
            guard let count = counts[client] else { return }
            counts[client] = count > 1 ? count - 1 : nil
        }
    }

    private func shard(of client: IPAddress) -> Int {
        Int(truncatingIfNeeded: UInt(bitPattern: client.hashValue) % UInt(Self.shardCount))
    }
}
