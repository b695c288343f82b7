import Bytes

/// The purges that this machine knows of: those that it has read in the log, and those that it will write there. They
/// decide whether a response in the engine was requested before a purge of it. A value without I/O.
package struct TierPurgeHistory: Sendable {
    /// The most purges that are kept: as many as the log has.
    package static let most = TierNumbers.purgesKept
    /// A response that is older than so many purges, those of URLs aside, is not used: each would have to be compared with
    /// it.
    package static let mostCompared = 10_000

    private struct Entry: Sendable {
        let id: TierPurgeID
        let purge: TierPurge
    }

    /// The purges of URLs in the log, of which there may be many, and each may have thousands of bytes: by their hashes.
    private struct URLs: Sendable {
        /// In the order of the log.
        private var entries: [(hash: TierHash, id: TierPurgeID)] = []
        /// The latest of each URL.
        private var latest: [TierHash: TierPurgeID] = [:]

        var count: Int { entries.count }

        func latest(of url: TierHash) -> TierPurgeID? { latest[url] }

        mutating func add(_ hash: TierHash, _ id: TierPurgeID) {
            entries.append((hash, id))
            latest[hash] = id
        }

        /// Forgets the first `count`, which there must be.
        /// - Returns: the last of them.
        mutating func removeFirst(_ count: Int) -> TierPurgeID {
            let last = entries[count - 1].id
            for (hash, id) in entries.prefix(count) where latest[hash] == id { latest[hash] = nil }
            entries.removeFirst(count)
            return last
        }
    }

    /// A purge that was made here, and is to be written to the log.
    package struct Pending: Sendable {
        package let purge: TierPurge
        fileprivate let number: Int
    }

    /// The last purge that was read, before which all are known back to `first`; `nil`: the log was not read yet.
    package private(set) var cursor: TierPurgeID?
    /// Whether the log was read to its end since the connection was made: what is not known yet may have purged anything.
    package var isCurrent = false
    private var first: TierPurgeID?
    private var urls = URLs()
    /// The other purges in the log, in its order.
    private var others: [Entry] = []
    /// Made here and in the log, and not read there yet.
    private var written: [Entry] = []
    /// Made here, and not in the log yet, in order.
    private var pending: [Pending] = []
    /// How many purges have been pending so far.
    private var made = 0

    package init() {}

    /// The log was read from its beginning, or not without a gap: nothing before `cursor` is known.
    package mutating func begin(at cursor: TierPurgeID) {
        (self.cursor, first, urls, others, written) = (cursor, cursor, URLs(), [], [])
    }

    /// The next purge of the log was read.
    package mutating func note(_ purge: TierPurge, _ id: TierPurgeID) {
        if knownCount >= Self.most { forget() }
        switch purge.kind {
        case .url: urls.add(TierHash(of: purge.value.span), id)
        case .prefix, .tag, .group, .everything: others.append(Entry(id: id, purge: purge))
        }
        written.removeAll { $0.id == id }
        cursor = id
    }

    /// Forgets the oldest of the longer list. What stays of the other list from before that does no harm.
    private mutating func forget() {
        let count = Self.most / 10
        let last: TierPurgeID
        if urls.count > others.count {
            last = urls.removeFirst(count)
        } else {
            last = others[count - 1].id
            others.removeFirst(count)
        }
        first = first.map { max($0, last) }
    }

    /// A purge was made here. It counts from now on, and is to be written to the log, unless an equal one is, behind the
    /// one that may be on its way.
    package mutating func add(_ purge: TierPurge) {
        if pending.last?.purge == purge, pending.count > 1 { return }
        if pending.count >= Self.mostCompared {
            pending = []
            append(TierPurge(.everything, .empty, isSoft: false))
        }
        append(purge)
    }

    private mutating func append(_ purge: TierPurge) {
        made += 1
        pending.append(Pending(purge: purge, number: made))
    }

    /// How many purges of the log are known.
    package var knownCount: Int { urls.count + others.count }

    /// How many purges are to be written to the log.
    package var pendingCount: Int { pending.count }

    /// The first purge that is to be written to the log.
    package var next: Pending? { pending.first }

    /// The purge that was the first of them is in the log. Others, and be they equal, may have taken its place meanwhile.
    package mutating func noteWritten(_ next: Pending, as id: TierPurgeID) {
        if pending.first?.number == next.number { pending.removeFirst() }
        // Kept until it is read in its place, which moves the cursor.
        written.append(Entry(id: id, purge: next.purge))
    }

    /// Whether a response may have been purged since it was requested.
    /// - Parameters:
    ///   - asof: the last purge that was known when it was requested.
    ///   - url: the hash of the key without its fields.
    ///   - isMeant: whether a purge is one of the response. Not called for purges of URLs that were read in the log.
    package func mayHavePurged(since asof: TierPurgeID, of url: TierHash, _ isMeant: (TierPurge) -> Bool) -> Bool {
        guard let first, asof >= first else { return true }
        if let latest = urls.latest(of: url), latest > asof { return true }
        if pending.contains(where: { isMeant($0.purge) }) { return true }
        if written.contains(where: { $0.id > asof && isMeant($0.purge) }) { return true }
        var compared = 0
        var index = others.count
        while index > 0 {
            index -= 1
            let entry = others[index]
            if entry.id <= asof { break }
            compared += 1
            if compared > Self.mostCompared || isMeant(entry.purge) { return true }
        }
        return false
    }
}
