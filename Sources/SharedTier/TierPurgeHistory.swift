import Bytes

/// The purges that this machine knows of: those that it has read in the log, and those that it will write there. They
/// decide whether a response in the engine was requested before a purge of it. A value without I/O.
package struct TierPurgeHistory: Sendable {
    /// The most purges that are kept: as many as the log has.
    package static let most = TierNumbers.purgesKept
    /// A response that is older than so many purges is not used: each would have to be compared with it.
    package static let mostCompared = 10_000

    private struct Entry: Sendable {
        let id: TierPurgeID
        let purge: TierPurge
    }

    /// The last purge that was read, before which all are known back to `first`; `nil`: the log was not read yet.
    package private(set) var cursor: TierPurgeID?
    /// Whether the log was read to its end since the connection was made: what is not known yet may have purged anything.
    package var isCurrent = false
    private var first: TierPurgeID?
    /// In the order of the log.
    private var entries: [Entry] = []
    /// Made here and in the log, and not read there yet.
    private var written: [Entry] = []
    /// Made here, and not in the log yet, in order.
    private var pending: [TierPurge] = []

    package init() {}

    /// The log was read from its beginning, or not without a gap: nothing before `cursor` is known.
    package mutating func begin(at cursor: TierPurgeID) {
        (self.cursor, first, entries, written) = (cursor, cursor, [], [])
    }

    /// The next purge of the log was read.
    package mutating func note(_ purge: TierPurge, _ id: TierPurgeID) {
        if entries.count >= Self.most {
            first = entries[Self.most / 10].id
            entries.removeFirst(Self.most / 10 + 1)
        }
        entries.append(Entry(id: id, purge: purge.remembered))
        written.removeAll { $0.id == id }
        cursor = id
    }

    /// A purge was made here. It counts from now on, and is to be written to the log, unless an equal one is, behind the
    /// one that may be on its way.
    package mutating func add(_ purge: TierPurge) {
        if pending.last == purge, pending.count > 1 { return }
        if pending.count >= Self.mostCompared {
            pending = [TierPurge(.everything, .empty, isSoft: false)]
        }
        pending.append(purge)
    }

    /// How many purges of the log are known.
    package var knownCount: Int { entries.count }

    /// How many purges are to be written to the log.
    package var pendingCount: Int { pending.count }

    /// The first purge that is to be written to the log.
    package var next: TierPurge? { pending.first }

    /// The purge that was the first of them is in the log. Others may have taken its place meanwhile.
    package mutating func noteWritten(_ purge: TierPurge, as id: TierPurgeID) {
        if pending.first == purge { pending.removeFirst() }
        // Kept until it is read in its place, which moves the cursor.
        written.append(Entry(id: id, purge: purge))
    }

    /// Whether a response may have been purged since it was requested.
    /// - Parameters:
    ///   - asof: the last purge that was known when it was requested.
    ///   - isMeant: whether a purge is one of the response.
    package func mayHavePurged(since asof: TierPurgeID, _ isMeant: (TierPurge) -> Bool) -> Bool {
        guard let first, asof >= first else { return true }
        if pending.contains(where: isMeant) { return true }
        if written.contains(where: { $0.id > asof && isMeant($0.purge) }) { return true }
        var compared = 0
        var index = entries.count
        while index > 0 {
            index -= 1
            let entry = entries[index]
            if entry.id <= asof { break }
            compared += 1
            if compared > Self.mostCompared || isMeant(entry.purge) { return true }
        }
        return false
    }
}
