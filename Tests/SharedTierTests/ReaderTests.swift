import Bytes
import SharedTier
import Testing

/// What a reader takes from a stream, and what it refuses.
@Suite struct ReaderTests {
    private static func entry(_ id: String, _ fields: String...) -> TierValue {
        .list([.text(ByteSlice(id)), .list(fields.map { .text(ByteSlice($0)) })])
    }

    private static let closing = "18446744073709551615-18446744073709551615"
    private static let head = entry("0-1", "h", "head", "t", "17")

    @Test func `a whole stream is a head, content and an end`() throws {
        var reader = TierReader(ByteSlice("a"))
        reader.announced = 10
        let entries = [
            Self.head, Self.entry("1-0", "d", "hello", "s", ""), Self.entry("6-0", "d", "world", "s", ""),
            Self.entry(Self.closing, "e", "10", "t", "X: y\r\n", "s", ""),
        ]
        #expect(
            try reader.read(.list(entries)) == [
                .head(ByteSlice("head"), at: 17), .content(ByteSlice("hello")), .content(ByteSlice("world")),
                .end(trailers: ByteSlice("X: y\r\n")),
            ])
        #expect(reader.state == .complete)
        #expect(reader.length == 10)
    }

    @Test func `a trailer that may be none is left out`() throws {
        var reader = TierReader(ByteSlice("a"))
        let trailers = "Content-Length: 5\r\nX: y\r\nTransfer-Encoding: chunked\r\n"
        let pieces = try reader.read(.list([Self.head, Self.entry(Self.closing, "e", "0", "t", trailers)]))
        #expect(pieces.last == .end(trailers: ByteSlice("X: y\r\n")))
    }

    @Test func `the entries after the last one are asked for`() throws {
        var reader = TierReader(ByteSlice("a"))
        let keys = TierKeys(prefix: ByteSlice("co"), primary: ByteSlice("x").span)
        #expect(reader.command(keys, most: 5).words.suffix(4) == ["(0-0", "+", "COUNT", "5"])
        _ = try reader.read(.list([Self.head, Self.entry("1-0", "d", "hello")]))
        #expect(reader.command(keys, most: 5).words.suffix(4) == ["(1-0", "+", "COUNT", "5"])
    }

    @Test(
        arguments: [
            ([entry("1-0", "d", "hello")], .noHead),
            ([entry("0-1", "h", "head")], .noHead),
            ([entry("0-1", "h", "head", "t", "x")], .noHead),
            ([entry("0-2", "h", "head", "t", "1")], .noHead),
            ([entry("0-1", "h", "head", "t", "-9223372036854775808")], .noHead),
            ([entry("0-1", "h", "head", "t", "9223372036854775807")], .noHead),
            ([entry(closing, "e", "0", "t", "")], .noHead),
            ([head, entry("2-0", "d", "hello")], .gap),
            ([head, entry("1-1", "d", "hello")], .gap),
            ([head, entry("1-0", "d", "hello"), entry("7-0", "d", "x")], .gap),
            ([head, entry("1-0", "d", "hello"), entry("5-0", "d", "x")], .gap),
            ([head, entry("1-0", "d", "hello"), entry("1-0", "d", "hello")], .gap),
            ([head, entry(closing, "e", "5", "t", "")], .gap),
            ([head, entry("1-0", "d", "hello"), entry(closing, "e", "4", "t", "")], .gap),
            ([head, entry("1-0", "d", "hello world")], .length),
            ([head, entry(closing, "e", "0", "t", "")], .length),
            ([head, entry("1-0", "d", "")], .unknownEntry),
            ([head, entry("1-0", "z", "hello")], .unknownEntry),
            ([head, entry(closing, "e", "x", "t", "")], .unknownEntry),
            ([head, entry(closing, "e", "0")], .unknownEntry),
            (
                [
                    head, entry("1-0", "d", "hello"),
                    entry(closing, "e", "5", "t", "X: a\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
                ],
                .trailers
            ),
            ([head, entry("1-0", "d", "hello"), entry(closing, "e", "5", "t", "X: a")], .trailers),
            ([head, entry("1-0", "d", "hello"), entry(closing, "e", "5", "t", "X: a\0\r\n")], .trailers),
            ([head, entry("1-0", "d", "hello"), entry(closing, "e", "5", "t", "X : a\r\n")], .trailers),
            ([head, entry("1-0", "d", "hello"), entry(closing, "e", "5", "t", "\r\n")], .trailers),
            ([head, head], .unknownEntry),
            (
                [head, entry("1-0", "d", "hello"), entry(closing, "e", "5", "t", ""), entry("6-0", "d", "x")],
                .unknownEntry
            ),
        ] as [([TierValue], TierRefusal)])
    func `nothing else is`(entries: [TierValue], reason: TierRefusal) throws {
        var reader = TierReader(ByteSlice("a"))
        reader.announced = 5
        let pieces = try reader.read(.list(entries))
        #expect(reader.state == .refused(reason))
        #expect(pieces.count == entries.count - 1)
        // It stays refused, and gives nothing more.
        #expect(try reader.read(.list([Self.head])) == [])
        #expect(reader.state == .refused(reason))
    }

    @Test func `a follower believes in its leader only while the lease has its token`() throws {
        let reader = TierReader(ByteSlice("a"))
        #expect(try reader.leads(.text(ByteSlice("a"))))
        #expect(!(try reader.leads(.text(ByteSlice("b")))))
        #expect(!(try reader.leads(.text(ByteSlice("-")))))
        #expect(!(try reader.leads(.none)))
        #expect(throws: TierReplyError.self) { try reader.leads(.error(ByteSlice("ERR"))) }
    }
}
