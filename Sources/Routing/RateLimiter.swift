import Bytes

/// A number of requests in a time, such as 20 a second.
package struct RequestRate: Sendable, Hashable {
    /// At least 1.
    package var requests: Int
    package var period: Period

    /// The raw value is the number of seconds.
    package enum Period: Int, Sendable, CaseIterable {
        case second = 1
        case minute = 60
        case hour = 3600
    }

    /// `requests` in each `period`.
    package init(_ requests: Int, per period: Period) { (self.requests, self.period) = (requests, period) }
}

/// The bucket that a limit gives each client. It is full at first. A request takes a token; a request that finds none is
/// refused, and takes none.
struct TokenBucket: Sendable {
    /// Nanoseconds after which a token is added.
    let interval: Int64
    /// Nanoseconds in which an empty bucket becomes full.
    let timeToFill: Int64

    /// - Parameter burst: the tokens that the bucket holds: requests that a client may send at once. At least 1.
    init(_ rate: RequestRate, burst: Int) {
        interval = max(1, Int64(rate.period.rawValue) * 1_000_000_000 / Int64(rate.requests))
        timeToFill = interval * Int64(burst)
    }
}

/// The token buckets of clients, for all limits and all loops. Any thread.
///
/// A bucket is one number: the time at which it is full again (the *theoretical arrival time* of the generic cell rate
/// algorithm, ITU-T I.371, annex A). A full bucket is the same as none, so a client that has been idle for long enough
/// needs no memory.
///
/// The buckets stand in hash tables with open addressing, 16 bytes a slot, one table a shard. A table that is three
/// quarters full forgets the buckets that are full again; if more than half of the slots are still in use, it doubles,
/// up to 2,097,152 over all shards: 32 MiB, with room for 1,500,000 clients that are not idle. Beyond that the
/// buckets that are nearest to full are forgotten, whose clients may then send one burst more.
public final class RateLimiter: Sendable {
    private static let shardCount = 64
    private static let fewestInShard = 16

    private let shards: FixedArray<Guarded<Shard>>

    /// All buckets are full.
    /// - Parameter mostSlots: over all shards; a power of two.
    init(mostSlots: Int) {
        let most = mostSlots / Self.shardCount
        shards = FixedArray(count: Self.shardCount) { _ in Guarded(Shard(mostSlots: most)) }
    }

    /// All buckets are full.
    public convenience init() { self.init(mostSlots: 1 << 21) }

    /// Takes a token from the bucket of `client`.
    /// - Parameters:
    ///   - client: a hash of the client and of the limit, under a secret key.
    ///   - now: in nanoseconds of the loops' clock.
    /// - Returns: 0, or the nanoseconds until there is a token.
    func take(from client: UInt64, _ bucket: TokenBucket, at now: Int64) -> Int64 {
        // The upper six bits choose the shard, the lower ones the slot; 0 marks a free slot.
        shards[Int(truncatingIfNeeded: client >> 58)].withLock { $0.take(from: max(1, client), bucket, at: now) }
    }

    /// For tests: the slots of all tables, and those in use.
    var slots: (all: Int, used: Int) {
        var sum = (all: 0, used: 0)
        for index in 0..<Self.shardCount {
            let shard = shards[index].withLock { ($0.clients.count, $0.used) }
            sum = (sum.all + shard.0, sum.used + shard.1)
        }
        return sum
    }

    fileprivate struct Shard {
        let mostSlots: Int
        /// A power of two of slots, or none. 0: the slot is free.
        var clients: [UInt64] = []
        /// When the bucket in the same slot is full.
        var fullAt: [Int64] = []
        var used = 0

        mutating func take(from client: UInt64, _ bucket: TokenBucket, at now: Int64) -> Int64 {
            var slot = slot(of: client)
            if slot == nil {
                makeRoom(at: now)
                slot = self.slot(of: client)
            }
            // There is a free slot after `makeRoom`.
            guard let slot else { return 0 }
            let isNew = clients[slot] == 0
            let full = (isNew ? now : max(now, fullAt[slot])) + bucket.interval
            let missing = full - now - bucket.timeToFill
            if missing > 0 { return missing }
            if isNew {
                clients[slot] = client
                used += 1
            }
            fullAt[slot] = full
            return 0
        }

        /// The slot of `client`, or the free slot for it; `nil` if there must be more free slots first.
        private func slot(of client: UInt64) -> Int? {
            guard !clients.isEmpty else { return nil }
            var slot = place(of: client)
            while clients[slot] != client {
                if clients[slot] == 0 { return used * 4 < clients.count * 3 ? slot : nil }
                slot = (slot + 1) & (clients.count - 1)
            }
            return slot
        }

        private func place(of client: UInt64) -> Int { Int(truncatingIfNeeded: client) & (clients.count - 1) }

        private mutating func makeRoom(at now: Int64) {
            let (formerClients, formerTimes) = (clients, fullAt)
            var (oldest, kept) = (now, formerTimes.indices.count { formerClients[$0] != 0 && formerTimes[$0] > now })
            var slots = max(formerClients.count, RateLimiter.fewestInShard)
            if kept * 2 > slots {
                if slots < mostSlots {
                    slots *= 2
                } else {
                    oldest = Self.median(of: formerTimes)
                    kept = slots / 2
                }
            }
            clients = [UInt64](repeating: 0, count: slots)
            fullAt = [Int64](repeating: 0, count: slots)
            used = 0
            for index in formerClients.indices
            where formerClients[index] != 0 && formerTimes[index] > oldest && used < kept {
                var slot = place(of: formerClients[index])
                while clients[slot] != 0 { slot = (slot + 1) & (slots - 1) }
                clients[slot] = formerClients[index]
                fullAt[slot] = formerTimes[index]
                used += 1
            }
        }

        /// About the median of many times: of 256 of them, since they are in no order.
        private static func median(of times: [Int64]) -> Int64 {
            let some = stride(from: 0, to: times.count, by: max(1, times.count / 256)).map { times[$0] }.filter {
                $0 != 0
            }.sorted()
            return some.isEmpty ? .min : some[some.count / 2]
        }
    }
}
