import Bytes
import SharedTier
import Testing

/// The purges that a machine knows decide which responses of the engine it uses.
@Suite struct PurgeHistoryTests {
    private static let purge = TierPurge(.tag, ByteSlice("t"), isSoft: false)

    private static let url = TierHash(of: ByteSlice("http a.example /").span)

    private func id(_ number: UInt64) -> TierPurgeID { TierPurgeID(milliseconds: 1000, number: number) }

    /// Whether a response requested after the purge `number` may have been purged by one of the tag.
    private func mayBePurged(_ history: TierPurgeHistory, since number: UInt64) -> Bool {
        history.mayHavePurged(since: id(number), of: Self.url) { $0 == Self.purge }
    }

    @Test func `a purge made here counts at once, while it is written, and once in the log`() throws {
        var history = TierPurgeHistory()
        history.begin(at: id(0))
        #expect(!mayBePurged(history, since: 0))
        history.add(Self.purge)
        // Whatever was requested before it is written may be of before.
        #expect(mayBePurged(history, since: 0) && history.pendingCount == 1)
        let next = try #require(history.next)
        #expect(next.purge == Self.purge)
        history.noteWritten(next, as: id(2))
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

    @Test(arguments: [
        TierPurge(.tag, ByteSlice("first"), isSoft: false), TierPurge(.everything, .empty, isSoft: false),
    ])
    func `purges that cannot be written become one of everything`(first: TierPurge) throws {
        var history = TierPurgeHistory()
        history.begin(at: id(0))
        history.add(first)
        let next = try #require(history.next)
        for number in 0..<TierPurgeHistory.mostCompared {
            history.add(TierPurge(.tag, ByteSlice("\(number)"), isSoft: false))
        }
        #expect(history.pendingCount <= 2 && history.next?.purge.kind == .everything)
        // The first of them was on its way meanwhile: what has taken its place, even if it is equal, is still to be
        // written.
        history.noteWritten(next, as: id(1))
        #expect(history.next?.purge.kind == .everything)
    }

    @Test func `equal purges one after another are written once`() {
        var history = TierPurgeHistory()
        history.begin(at: id(0))
        for _ in 0..<20_000 { history.add(Self.purge) }
        // The first may be on its way already, so the second may come too late for it.
        #expect(history.pendingCount == 2 && history.next?.purge == Self.purge)
    }

    @Test func `a purge of a URL concerns that URL and no other, and is compared with none`() {
        func hash(_ number: Int) -> TierHash { TierHash(of: ByteSlice("http a.example /\(number)").span) }
        var history = TierPurgeHistory()
        history.begin(at: id(0))
        // More than could be compared.
        let count = TierPurgeHistory.mostCompared + 10
        for number in 1...count {
            history.note(
                TierPurge(.url, ByteSlice("http a.example /\(number)"), isSoft: false), id(UInt64(number)))
        }
        var compared = 0
        func mayBePurged(_ number: Int, since last: UInt64) -> Bool {
            history.mayHavePurged(since: id(last), of: hash(number)) { _ in
                compared += 1
                return true
            }
        }
        #expect(mayBePurged(1, since: 0) && !mayBePurged(1, since: 1))
        #expect(mayBePurged(count, since: 5) && !mayBePurged(count + 1, since: 0))
        #expect(compared == 0)
        // Once more, and the later one counts.
        history.note(TierPurge(.url, ByteSlice("http a.example /1"), isSoft: true), id(UInt64(count + 1)))
        #expect(mayBePurged(1, since: UInt64(count)))
    }

    @Test func `the oldest purges of URLs are forgotten, and what was requested before them is not used`() {
        var history = TierPurgeHistory()
        history.begin(at: id(0))
        func isPurged(_ url: Int, since last: UInt64) -> Bool {
            let hash = TierHash(of: ByteSlice("http a.example /\(url)").span)
            return history.mayHavePurged(since: id(last), of: hash) { _ in false }
        }
        // Each of seven again and again.
        for number in 1...UInt64(TierPurgeHistory.most + 1) {
            history.note(
                TierPurge(.url, ByteSlice("http a.example /\(number % 7)"), isSoft: false), id(number))
        }
        #expect(history.knownCount <= TierPurgeHistory.most)
        let last = UInt64(TierPurgeHistory.most + 1)
        #expect(isPurged(9, since: 1) && !isPurged(9, since: last / 2))
        for url in 0..<7 { #expect(isPurged(url, since: last / 2) && !isPurged(url, since: last)) }
    }
}
