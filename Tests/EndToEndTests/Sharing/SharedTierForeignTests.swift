import Testing

/// Somebody else writes to the engine. What machines would not take from an origin they do not take from there, and with
/// a secret they take nothing that another has written.
@Suite(.scenario) struct SharedTierForeignTests {
    private static let site = SharedMachines.site
    private static let closing = "18446744073709551615-18446744073709551615"
    /// The page of the tests has it, so that there is room for other fields in its record.
    private static let room = "X-Room: " + String(repeating: "r", count: 60)

    /// One kind of harm to the stream of a response, as a machine has written it.
    struct Harm: CustomTestStringConvertible, Sendable {
        let name: String
        let change: @Sendable (inout [Entry]) -> Void
        /// Whether no machine would write it, so that it is told. Another one may be configured to share what this one
        /// does not.
        var isTold = true
        var testDescription: String { name }

        init(_ name: String, _ change: @escaping @Sendable (inout [Entry]) -> Void) {
            (self.name, self.change) = (name, change)
        }

        /// The record gets other bytes, of the same length.
        static func record(_ name: String, _ old: String, _ new: String, isTold: Bool = true) -> Harm {
            let padded = new + String(repeating: "p", count: max(0, old.utf8.count - new.utf8.count))
            var harm = Harm(name) { $0[0].replace("h", old, by: padded) }
            harm.isTold = isTold
            return harm
        }
    }

    /// An entry of a stream: its id, its names and values.
    struct Entry: Sendable {
        var id: String
        var fields: [[UInt8]]

        init(_ id: String, _ fields: String...) { (self.id, self.fields) = (id, fields.map { Array($0.utf8) }) }

        init(_ reply: RedisEngine.Reply) {
            (id, fields) = (reply.elements[0].string, reply.elements[1].elements.map(\.bytes))
        }

        mutating func set(_ name: String, to value: String) {
            for index in stride(from: 0, to: fields.count, by: 2) where fields[index] == Array(name.utf8) {
                fields[index + 1] = Array(value.utf8)
            }
        }

        mutating func replace(_ name: String, _ old: String, by new: String) {
            for index in stride(from: 0, to: fields.count, by: 2) where fields[index] == Array(name.utf8) {
                fields[index + 1].replace(Array(old.utf8), with: Array(new.utf8), maxReplacements: 1)
            }
        }
    }

    /// What an origin may not say either, and what no machine writes.
    static let harms: [Harm] = [
        .record("a bare CR", room, "X-Room: a\rSet-Cookie: evil=1"),
        .record("a bare LF and a second head", room, "X-Room: a\n\nHTTP/1.1 200 OK"),
        .record("a NUL", room, "X-Room: a\0"),
        .record("a cookie", room, "Set-Cookie: evil=", isTold: false),
        .record("a private response", "max-age=600, x=000000", "private, max-age=9999", isTold: false),
        .record("a response that is not stored", "max-age=600, x=000000", "no-store, x=00000000", isTold: false),
        .record("another length", "Content-Length: 4\r\n", "Content-Length: 9\r\n"),
        .record("a smaller length", "Content-Length: 4\r\n", "Content-Length: 3\r\n"),
        .record("a second length", room, "Content-Length: 5\r\nX: "),
        .record("chunks", room, "Transfer-Encoding: chunked\r\nX: "),
        .record("a field of one connection", room, "Connection: close\r\nX: "),
        .record("an age", room, "Age: 100000\r\nX: "),
        .record("status 100", "HTTP/1.1 200", "HTTP/1.1 100"),
        .record("status 304", "HTTP/1.1 200", "HTTP/1.1 304", isTold: false),
        .record("no HTTP", "HTTP/1.1 200", "ICY 1.1 2000"),
        .record("another key", " /x", " /y"),
        Harm("no record") { $0[0].set("h", to: "") },
        Harm("garbage for a record") { $0[0].set("h", to: String(repeating: "\u{1}\u{7f}", count: 100)) },
        Harm("a time before all times") { $0[0].set("t", to: "-9223372036854775808") },
        Harm("a time after all times") { $0[0].set("t", to: "9223372036854775807") },
        Harm("no head") { $0.removeFirst() },
        Harm("a gap") { $0.insert(Entry("3-0", "d", "e", "s", ""), at: 2) },
        Harm("more content") { $0.insert(Entry("5-0", "d", "evil", "s", ""), at: 2) },
        Harm("an entry of another kind") { $0.insert(Entry("5-0", "x", "y"), at: 2) },
        Harm("less content") { $0.remove(at: 1) },
        Harm("trailers with a second response") {
            $0[$0.count - 1].set("t", to: "X: a\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
        },
        Harm("trailers without an end") { $0[$0.count - 1].set("t", to: "X: a") },
        Harm("another end") { $0[$0.count - 1].set("e", to: "5") },
    ]

    /// Puts the entries into the engine in place of those of a stream.
    private func rewrite(_ engine: RedisEngine, _ change: (inout [Entry]) -> Void) throws {
        try eventually("the engine has it") { try !engine.names("b:").isEmpty }
        let name = try #require(try engine.names("b:").first)
        var entries: [Entry] = []
        try eventually("it is complete") {
            entries = try engine.send("XRANGE", name, "-", "+").elements.map { Entry($0) }
            return entries.count == 3 && entries[0].id == "0-1" && entries[2].id == Self.closing
        }
        change(&entries)
        try engine.send("DEL", name)
        for entry in entries {
            let words = ["XADD", name, entry.id].map { Array($0.utf8) } + entry.fields
            #expect(try engine.send(words) == .text(Array(entry.id.utf8)))
        }
    }

    private static let page: ScriptedOrigin.Handler = { request in
        [.answer(200, "Cache-Control: max-age=600, x=000000", room, body: "page")]
    }

    @Test(arguments: harms)
    func `a response that no machine would write is a miss, with one line`(harm: Harm) throws {
        try SharedMachines.run { origin, machines, engine in
            origin.on("*", Self.page)
            #expect(try machines.texts("/x", of: 0) == ["page"])
            try rewrite(engine, harm.change)
            for number in 1...2 {
                let answer = try machines.proxies[number].send("GET", "/x", [Self.site])
                #expect(answer.isClean && answer.text == "page" && answer.status == 200)
                #expect(answer["set-cookie"] == nil && answer["age"] ?? "0" < "2")
            }
            #expect((2...3).contains(origin.count("/x")))
            var told: [Substring] = []
            for proxy in machines.proxies {
                told += proxy.diagnostics.split(separator: "\n").filter { $0.contains("is not used") }
            }
            #expect(((harm.isTold ? 1 : 0)...2).contains(told.count), "\(told)")
        }
    }

    @Test(arguments: [false, true])
    func `with a secret, nothing that others have written is used`(isContent: Bool) throws {
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        try System.write("a secret of more than thirty-two bytes\n", to: "\(folder)/secret")
        try SharedMachines.run(
            .other(section: "shared", key: "secret-file", value: "\(folder)/secret")
        ) { origin, machines, engine in
            origin.on("*", Self.page)
            // What machines write is used.
            #expect(try machines.texts("/y") == ["page", "page", "page"])
            #expect(origin.count("/y") == 1)
            for name in try engine.names("b:") { try engine.send("DEL", name) }
            #expect(try machines.texts("/x", of: 0) == ["page"])
            try rewrite(engine) { entries in
                if isContent { entries[1].set("d", to: "evil") } else { entries[0].replace("h", "rrr", by: "eee") }
            }
            #expect(try machines.texts("/x", of: 1, 2) == ["page", "page"])
            #expect(origin.count("/x") == 2)
            #expect(machines.proxies.contains { $0.diagnostics.contains("no seal of the secret") })
        }
    }

    @Test(arguments: [
        ["SET", "m", "x"], ["SADD", "m", "x"], ["SADD", "l:", "x"], ["SET", "l:", "evil"], ["SET", "l:", "-"],
        ["SET", "l:", "a\r\nb"], ["SET", "l:", ""], ["HSET", "m", "r:", "garbage", "vary", "\u{0}\r\n: :"],
        ["HSET", "m", "r:", "t 4 99999999999999999999 1 99999999999999999999"],
        ["HSET", "m", "r:", "../../x 4 1 9999999999999 9999999999999"],
    ])
    func `a key of another type or with garbage in it is a miss`(words: [String]) throws {
        try SharedMachines.run { origin, machines, engine in
            origin.on("*", Self.page)
            #expect(try machines.texts("/x", of: 0) == ["page"])
            // The response is written beside what its client gets.
            try eventually("the engine has it") { try !engine.names("m").isEmpty }
            let name = try #require(try engine.names("m").first)
            try engine.send("FLUSHALL")
            let key = name.dropLast() + words[1]
            try engine.send([words[0], String(key)].map { Array($0.utf8) } + words.dropFirst(2).map { Array($0.utf8) })
            // The other machines have not asked for it, and the first has emptied its memory.
            let crowds = machines.proxies.map { $0.crowd(2, get: "/x", Self.site) }
            #expect(crowds.allSatisfy { $0.finished(within: .seconds(5)).allSatisfy { $0.text == "page" } })
        }
    }

    @Test(arguments: [
        ["SET", "x"], ["XADD", "*", "k", "what", "v", "", "s", "0"], ["XADD", "9999999999999999-0", "a", "b"],
    ])
    func `a log of purges that somebody has spoilt leads to fetches, never to old pages`(words: [String]) throws {
        try SharedMachines.run { origin, machines, engine in
            origin.on("*") { request in [.answer(200, "Cache-Control: max-age=600", body: "\(request.number)")] }
            #expect(try machines.texts("/x") == ["1", "1", "1"])
            if words[0] == "SET" { try engine.send("DEL", "co:purge") }
            try engine.send([words[0], "co:purge"].map { Array($0.utf8) } + words.dropFirst().map { Array($0.utf8) })
            let purged = try machines.proxies[0].admin.send("POST", "/purge", body: "http://site.test/x")
            #expect(purged.status == 200)
            #expect(try machines.texts("/x", of: 0) != ["1"])
            if words[0] == "SET" { try engine.send("DEL", "co:purge") }
            try eventually("no machine has the old page", within: .seconds(5)) {
                try !machines.texts("/x").contains("1")
            }
        }
    }
}
