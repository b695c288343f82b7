import Bytes
import SharedTier
import Testing

/// The purges that a machine knows decide which responses of the engine it uses.
@Suite struct PurgeHistoryTests {
    private static let purge = TierPurge(.tag, ByteSlice("t"), isSoft: false)

    private func id(_ number: UInt64) -> TierPurgeID { TierPurgeID(milliseconds: 1000, number: number) }

    /// Whether a response requested after the purge `number` may have been purged by one of the tag.
    private func mayBePurged(_ history: TierPurgeHistory, since number: UInt64) -> Bool {
        history.mayHavePurged(since: id(number)) { $0 == Self.purge }
    }

    @Test func `a purge made here counts at once, while it is written, and once in the log`() {
        var history = TierPurgeHistory()
        history.begin(at: id(0))
        #expect(!mayBePurged(history, since: 0))
        history.add(Self.purge)
        // Whatever was requested before it is written may be of before.
        #expect(mayBePurged(history, since: 0) && history.pendingCount == 1 && history.next == Self.purge)
        history.noteWritten(Self.purge, as: id(2))
        #expect(mayBePurged(history, since: 1) && !mayBePurged(history, since: 2) && history.pendingCount == 0)
        // Another machine's is in front of it.
        history.note(TierPurge(.tag, ByteSlice("other"), isSoft: false), id(1))
        #expect(mayBePurged(history, since: 1) && history.cursor == id(1))
        history.note(Self.purge, id(2))
        #expect(mayBePurged(history, since: 1) && !mayBePurged(history, since: 2))
        #expect(history.knownCount == 2 && history.cursor == id(2))
    }

    @Test func `what was requested before the first known purge is not used`() {
        var history = TierPurgeHistory()
        #expect(mayBePurged(history, since: 5), "the log was not read")
        history.begin(at: id(3))
        #expect(mayBePurged(history, since: 2) && !mayBePurged(history, since: 3))
        for number in 4...UInt64(TierPurgeHistory.most + 4) {
            history.note(TierPurge(.tag, ByteSlice("other"), isSoft: false), id(number))
        }
        #expect(mayBePurged(history, since: 3), "the oldest are forgotten")
        #expect(history.knownCount <= TierPurgeHistory.most)
        let last = UInt64(TierPurgeHistory.most + 4)
        #expect(!mayBePurged(history, since: last - UInt64(TierPurgeHistory.mostCompared)))
        #expect(mayBePurged(history, since: last - UInt64(TierPurgeHistory.mostCompared) - 1))
    }

    @Test func `purges that cannot be written become one of everything`() {
        var history = TierPurgeHistory()
        history.begin(at: id(0))
        func other(_ number: Int) -> TierPurge { TierPurge(.tag, ByteSlice("\(number)"), isSoft: false) }
        for number in 0...TierPurgeHistory.mostCompared { history.add(other(number)) }
        #expect(history.pendingCount <= 2 && history.next?.kind == .everything)
        // The first of them was on its way meanwhile: what has taken its place is still to be written.
        history.noteWritten(other(0), as: id(1))
        #expect(history.next?.kind == .everything)
    }

    @Test func `equal purges one after another are written once`() {
        var history = TierPurgeHistory()
        history.begin(at: id(0))
        for _ in 0..<20_000 { history.add(Self.purge) }
        // The first may be on its way already, so the second may come too late for it.
        #expect(history.pendingCount == 2 && history.next == Self.purge)
    }

    @Test func `a purge of a URL is remembered by a hash, and of no other`() {
        let (url, other) = (
            ByteSlice("http a.example /" + String(repeating: "x", count: 100)), ByteSlice("http a.example /y")
        )
        var history = TierPurgeHistory()
        history.begin(at: id(0))
        history.note(TierPurge(.url, url, isSoft: false), id(1))
        #expect(history.mayHavePurged(since: id(0)) { $0.isOf(url: url.span) })
        #expect(!history.mayHavePurged(since: id(0)) { $0.isOf(url: other.span) })
        #expect(!history.mayHavePurged(since: id(0)) { $0.value == url })
    }
}
