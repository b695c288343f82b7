import Bytes
import HTTPSemantics
import Repeatable
import SharedTier
import Testing

/// What is believed of a record that lies in the engine.
@Suite struct RecordTests {
    private static let text = "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 5\r\n\r\n"
    private let key = ByteSlice("http example.com /a?b")
    private let token = ByteSlice("tok.1")
    private let seal = TierSeal(secret: ByteSlice("secret").span)

    private func record(_ head: String = text) -> TierRecord {
        var record = TierRecord(
            key: key, asof: TierPurgeID(milliseconds: 1_795_762_937_286, number: 3), age: 4321, head: ByteSlice(head))
        record.selecting = ByteSlice("accept\u{1}x\0")
        record.elsewhere = ByteSlice("http://10.0.0.3:8082")
        return record
    }

    private func read(_ bytes: ByteSlice, seal: TierSeal? = nil) throws(TierRefusal) -> TierRecord {
        try TierRecord(reading: bytes, for: key.span, under: token, seal: seal)
    }

    private static func slice(_ bytes: [UInt8]) -> ByteSlice { ByteSlice(copying: bytes.span) }

    @Test func `a record is read as it was written`() throws {
        for seal in [nil, seal] {
            let bytes = try #require(record().written(under: token, seal: seal))
            #expect(try read(bytes, seal: seal) == record())
        }
        // A machine without the secret reads what others sealed.
        let sealed = try #require(record().written(under: token, seal: seal))
        #expect(try read(sealed) == record())
    }

    @Test func `a record that is cut, longer or of another version is refused`() throws {
        let bytes = try #require(record().written(under: token, seal: nil))
        for count in 1..<bytes.count { #expect(throws: TierRefusal.form) { try read(bytes[0..<count]) } }
        #expect(throws: TierRefusal.version) { try read(.empty) }
        for extra in [1, 31, 33] {
            let longer = Self.slice(Array(bytes) + [UInt8](repeating: 0, count: extra))
            #expect(throws: TierRefusal.form) { try read(longer) }
        }
        #expect(throws: TierRefusal.version) { try read(Self.slice([2] + Array(bytes).dropFirst())) }
        #expect(throws: TierRefusal.form) {
            try read(Self.slice([UInt8](repeating: 1, count: TierRecord.most + 1)))
        }
    }

    @Test func `the record of another key is refused`() throws {
        let bytes = try #require(record().written(under: token, seal: nil))
        for other in ["http example.com /a?c", "http example.com /a?", "http example.com /a?bb", ""] {
            let other = ByteSlice(other)
            #expect(throws: TierRefusal.otherKey) {
                try TierRecord(reading: bytes, for: other.span, under: token, seal: nil)
            }
        }
    }

    @Test func `a record that is too large is not written`() {
        #expect(record(String(repeating: "x", count: TierRecord.most)).written(under: token, seal: nil) == nil)
    }

    @Test func `an age that cannot be added to is refused`() throws {
        var old = record()
        old.age = .max
        let bytes = try #require(old.written(under: token, seal: seal))
        #expect(throws: TierRefusal.form) { try read(bytes, seal: seal) }
    }

    @Test func `with a secret, no changed, moved or unsealed record is read`() throws {
        let bytes = try #require(record().written(under: token, seal: seal))
        for index in 1..<bytes.count {
            var changed = Array(bytes)
            changed[index] ^= 1
            let slice = Self.slice(changed)
            #expect(throws: TierRefusal.self, "byte \(index)") { try read(slice, seal: seal) }
        }
        #expect(throws: TierRefusal.seal) {
            try TierRecord(reading: bytes, for: key.span, under: ByteSlice("tok.2"), seal: seal)
        }
        let unsealed = try #require(record().written(under: token, seal: nil))
        #expect(throws: TierRefusal.seal) { try read(unsealed, seal: seal) }
        let other = TierSeal(secret: ByteSlice("other").span)
        #expect(throws: TierRefusal.seal) { try read(bytes, seal: other) }
    }

    @Test func `random bytes are refused, or read within bounds`() throws {
        for seed in Rounds.seeds(2000) {
            var random = SeededGenerator(seed: seed)
            var bytes = Array(try #require(record().written(under: token, seal: nil)))
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                bytes[Int.random(in: 1..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            let slice = Self.slice(bytes)
            if let record = try? read(slice) { _ = try? TierHead(record) }
        }
    }

    @Test func `a head is read as an origin's is`() throws {
        let head = try TierHead(record())
        #expect(head.head.status == Status(200))
        #expect(head.announced == 5)
        #expect(head.fields.lineCount == 2)
        #expect(try TierHead(record("HTTP/1.1 204 No Content\r\n\r\n")).announced == nil)
    }

    @Test(
        arguments: [
            ("", .head), ("HTTP/1.1 200 OK\r\n", .head), ("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", .head),
            ("HTTP/1.1 200 OK\r\n\r\nbody", .head), ("HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", .head),
            ("HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n", .head), ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", .head),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", .head),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", .head), ("HTTP/1.1 100 Continue\r\n\r\n", .head),
            ("ICY 200 OK\r\n\r\n", .head), ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", .connectionField),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .connectionField),
            ("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\n\r\n", .connectionField),
            ("HTTP/1.1 200 OK\r\nAge: 1\r\n\r\n", .connectionField),
        ] as [(String, TierRefusal)])
    func `a head that is none is refused`(text: String, reason: TierRefusal) {
        #expect(throws: reason) { try TierHead(record(text)) }
    }

    @Test func `sealed content cannot be changed, moved, swapped or cut short`() throws {
        let keys = TierKeys(prefix: ByteSlice("co"), primary: key.span)
        var lead = TierLead(keys, variant: .empty, token: token, lease: 3000, seal: seal)
        _ = lead.head(ByteSlice("head"))
        var entries = [["0-1", "h", "head", "t", "1"].map { ByteSlice($0) }]
        for text in ["hello", "world"] {
            entries.append(
                lead.content(ByteSlice(text)).arguments.dropFirst(3).compactMap { argument in
                    switch argument {
                    case .bytes(let bytes): bytes
                    case .word(let word): ByteSlice(word.text)
                    case .key, .number: nil
                    }
                })
        }
        guard case .bytes(let mark)? = lead.finish(.init()).arguments.last else { Issue.record("no mark"); return }
        entries.append(
            ["18446744073709551615-18446744073709551615", "e", "10", "t", "", "s"].map { ByteSlice($0) } + [mark])
        func state(_ entries: [[ByteSlice]], _ token: ByteSlice) throws -> TierReader.State {
            var reader = TierReader(token, seal: seal)
            _ = try reader.read(
                .list(entries.map { .list([.text($0[0]), .list($0.dropFirst().map { .text($0) })]) }))
            return reader.state
        }
        #expect(try state(entries, token) == .complete)
        #expect(try state(entries, ByteSlice("tok.2")) == .refused(.seal))
        for (index, value) in [(1, "jello"), (2, "worl")] {
            var changed = entries
            changed[index][2] = ByteSlice(value)
            #expect(try state(changed, token) == .refused(.seal))
        }
        var swapped = entries
        (swapped[1][2], swapped[1][4], swapped[2][2], swapped[2][4]) = (
            entries[2][2], entries[2][4], entries[1][2], entries[1][4]
        )
        #expect(try state(swapped, token) == .refused(.seal))
        var short = entries
        short.remove(at: 2)
        short[2][2] = ByteSlice("5")
        #expect(try state(short, token) == .refused(.seal))
    }
}

extension Array where Element == UInt8 {
    init(_ slice: ByteSlice) {
        self = []
        for index in 0..<slice.count { append(slice.span[index]) }
    }
}
