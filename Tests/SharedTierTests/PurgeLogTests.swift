import Bytes
import SharedTier
import Testing

/// The log of purges, which every machine reads with a cursor of its own.
@Suite struct PurgeLogTests {
    private let log = TierKeys.purges(prefix: ByteSlice("p\(UInt64.random(in: 0 ... .max))"))

    private func news(_ connection: EngineConnection, after cursor: TierPurgeID?, most: Int = 1000) throws
        -> TierPurgeNews
    {
        try TierPurgeNews(connection.send(TierPurgeNews.command(log: log, after: cursor, most: most)))
    }

    private func add(_ connection: EngineConnection, _ purge: TierPurge, kept: Int = 1000) throws -> TierPurgeID? {
        guard case .text(let id) = try connection.send(purge.command(log: log, kept: kept)) else { return nil }
        return TierPurgeID(id.span)
    }

    @Test func `a machine reads all purges after its cursor, in order and as they were written`() throws {
        let connection = try EngineConnection(Engine.shared.get().path)
        let start = try news(connection, after: nil)
        #expect(start.isGap)
        #expect(start.purges.isEmpty)
        let purges = TierPurge.Kind.allCases.flatMap { kind in
            [TierPurge(kind, ByteSlice("v\r\n \(kind)"), isSoft: false), TierPurge(kind, .empty, isSoft: true)]
        }
        let ids = try purges.map { try add(connection, $0) }
        let all = try news(connection, after: start.last)
        #expect(!all.isGap)
        #expect(all.purges.map(\.purge) == purges)
        #expect(all.purges.map(\.id) == ids.compactMap { $0 })
        #expect(all.last == ids.last)
        #expect(all.purges.map(\.id) == all.purges.map(\.id).sorted())
        let some = try news(connection, after: ids[1], most: 3)
        #expect(some.purges.map(\.purge) == Array(purges[2..<5]))
        #expect(try news(connection, after: all.last).purges.isEmpty)
    }

    @Test(arguments: [
        "the log was evicted", "the engine was emptied", "the log is longer than it may be", "another clock",
    ])
    func `a machine learns that it has missed purges`(event: String) throws {
        let engine = try Engine()
        let connection = try EngineConnection(engine.path)
        let start = try news(connection, after: nil)
        var cursor = start.last
        _ = try add(connection, TierPurge(.url, ByteSlice("a"), isSoft: false))
        switch event {
        case "the log was evicted": try connection.send("DEL", String(log))
        case "the engine was emptied": try connection.send("FLUSHALL")
        case "another clock": cursor = TierPurgeID(milliseconds: start.last.milliseconds + 1_000_000, number: 0)
        default:
            // The engine drops entries by the hundred.
            for number in 0..<400 {
                _ = try add(connection, TierPurge(.url, ByteSlice("\(number)"), isSoft: false), kept: 10)
            }
        }
        if event.hasSuffix("evicted") || event.hasSuffix("emptied") {
            _ = try add(connection, TierPurge(.url, ByteSlice("b"), isSoft: false))
        }
        let after = try news(connection, after: cursor)
        #expect(after.isGap)
        #expect(after.purges.isEmpty)
        #expect(!(try news(connection, after: after.last).isGap))
        if !event.hasSuffix("clock") { #expect(after.first > cursor) }
    }

    @Test func `a machine that has read everything misses nothing when the log is cut`() throws {
        let connection = try EngineConnection(Engine.shared.get().path)
        var cursor = try news(connection, after: nil).last
        for number in 0..<400 {
            _ = try add(connection, TierPurge(.url, ByteSlice("\(number)"), isSoft: false), kept: 10)
            let next = try news(connection, after: cursor)
            #expect(!next.isGap)
            #expect(next.purges.map { String($0.purge.value) } == ["\(number)"])
            cursor = next.last
        }
    }

    @Test func `a purge that nobody understands counts as one of everything`() throws {
        let connection = try EngineConnection(Engine.shared.get().path)
        let start = try news(connection, after: nil)
        try connection.send("XADD", String(log), "*", "k", "planet", "v", "x", "s", "0")
        let purges = try news(connection, after: start.last).purges
        #expect(purges.map(\.purge) == [TierPurge(.everything, .empty, isSoft: false)])
    }

    @Test(arguments: [
        ("1-0", true), ("18446744073709551615-18446744073709551615", true), ("18446744073709551616-0", false),
        ("", false), ("1", false), ("1-", false), ("-1", false), ("1-0-0", false), ("+1-0", false), ("1 -0", false),
    ])
    func `an id is two numbers`(text: String, isID: Bool) {
        let bytes = ByteSlice(text)
        let id = TierPurgeID(bytes.span)
        #expect((id != nil) == isID)
        if let id { #expect(id.text == bytes) }
    }
}
