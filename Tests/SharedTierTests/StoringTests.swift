import Bytes
import SharedTier
import Testing

/// What is stored, and what a look-up brings.
@Suite struct StoringTests {
    @Test func `a small hit comes whole in one answer`() throws {
        let resource = try Resource()
        try resource.store("a", "hello")
        let answer = try resource.ask("b")
        #expect(answer.verdict == .hit)
        let stored = try #require(answer.stored)
        #expect(String(stored.token) == "a")
        #expect(stored.length == 5)
        #expect(stored.freshUntil - stored.at == 3_600_000)
        #expect(stored.expires - stored.at == 7_200_000)
        #expect(stored.at <= answer.now)
        let (pieces, state) = try stored.pieces()
        #expect(
            pieces == [
                .head(ByteSlice("head of a"), at: stored.at), .content(ByteSlice("hello")), .end(trailers: .empty),
            ])
        #expect(state == .complete)
    }

    @Test func `a large hit comes with its head, and a reader gets the rest`() throws {
        let resource = try Resource()
        var lead = try resource.leader("a")
        _ = try resource.outcome(lead.head(ByteSlice("head")))
        var body = ""
        for number in 0..<40 {
            body += "<\(number)>"
            #expect(try resource.write("<\(number)>", &lead) == .done)
        }
        #expect(try resource.outcome(lead.finish(trailers: ByteSlice("X: y\r\n"), .hour)) == .done)
        let stored = try #require(try resource.ask(resource.question("b"), inlineLength: body.utf8.count - 1).stored)
        var reader = TierReader(stored.token)
        #expect(try reader.read(stored.entries) == [.head(ByteSlice("head"), at: stored.at)])
        var read = ""
        while reader.state == .content {
            for case .content(let bytes) in try reader.read(
                resource.connection.send(reader.command(resource.keys, most: 7)))
            {
                read += String(bytes)
            }
        }
        #expect(reader.state == .complete)
        #expect(read == body)
    }

    @Test func `an engine that evicts what is seldom read evicts the stream before its record`() throws {
        let engine = try Engine()
        let resource = try Resource(engine)
        try resource.connection.send("CONFIG", "SET", "maxmemory-policy", "volatile-lfu")
        // The engine would take one off each frequency when the next minute of its clock begins.
        try resource.connection.send("CONFIG", "SET", "lfu-decay-time", "0")
        func frequency(_ name: String) throws -> Int64 {
            guard case .integer(let number) = try resource.connection.send("OBJECT", "FREQ", name) else { return -1 }
            return number
        }
        try resource.store("a")
        let (record, stream) = (try frequency(resource.resource), try frequency(resource.stream("a")))
        #expect(record == 10 && (0..<record).contains(stream), "\(record), \(stream)")
        // It is as it was, and still ends.
        #expect(try resource.ask("b").stored?.body() == "hello")
        guard case .integer(let left) = try resource.connection.send("PTTL", resource.resource) else {
            Issue.record("no end")
            return
        }
        #expect((7_000_000...7_200_000).contains(left))
        // A stream that was evicted leads to a new one, under the same record.
        try resource.connection.send("DEL", resource.stream("a"))
        try resource.store("b", "again")
        #expect(try resource.ask("c").stored?.body() == "again")
    }

    @Test func `the age counts from the head, by the engine's clock`() throws {
        let resource = try Resource()
        func time() throws -> Int64 {
            guard case .list(let parts) = try resource.connection.send("TIME"), case .text(let seconds) = parts[0],
                case .text(let micros) = parts[1]
            else { return 0 }
            return (Int64(String(seconds)) ?? 0) * 1000 + (Int64(String(micros)) ?? 0) / 1000
        }
        var lead = try resource.leader("a")
        let before = try time()
        _ = try resource.outcome(lead.head(ByteSlice("head")))
        let after = try time()
        while try time() < after + 5 {}
        _ = try resource.outcome(lead.finish(.hour))
        let answer = try resource.ask("b")
        let stored = try #require(answer.stored)
        #expect((before...after).contains(stored.at))
        #expect(answer.now >= after + 5)
    }

    @Test func `another Vary is told at once, and each variant has its own response and leader`() throws {
        let resource = try Resource()
        try resource.store("a", "one", "accept", "v1")
        #expect(try resource.ask("b").verdict == .vary(ByteSlice("accept")))
        #expect(try resource.ask("b", vary: "cookie", "v9").verdict == .vary(ByteSlice("accept")))
        #expect(try resource.ask("b", vary: "accept", "v1").stored?.body() == "one")
        try resource.store("b", "two", "accept", "v2")
        #expect(try resource.ask("c", vary: "accept", "v1").stored?.body() == "one")
        #expect(try resource.ask("c", vary: "accept", "v2").stored?.body() == "two")
        #expect(try resource.ask("c", vary: "accept", "v3").verdict == .lead(left: 60_000))
        #expect(try resource.ask("d", vary: "accept", "v4").verdict == .lead(left: 60_000))
    }

    @Test func `a record without its stream is a miss, and is dropped`() throws {
        let resource = try Resource()
        try resource.store("a")
        try resource.connection.send("DEL", resource.stream("a"))
        let answer = try resource.ask(nil)
        #expect(answer.verdict == .miss)
        #expect(answer.stored == nil)
        #expect(try resource.names() == [])
    }

    @Test func `an expired record is a miss, although the resource has others`() throws {
        let resource = try Resource()
        var short = TierLead.Keeping.hour
        (short.fresh, short.lifetime) = (1, 1)
        try resource.store("b", "two", "accept", "v2")
        try resource.store("a", "one", keeping: short, "accept", "v1")
        var answer = try resource.ask(nil, vary: "accept", "v1")
        for _ in 0..<1000 where answer.stored != nil { answer = try resource.ask(nil, vary: "accept", "v1") }
        #expect(answer.verdict == .miss)
        #expect(answer.stored == nil)
        #expect(try resource.ask(nil, vary: "accept", "v2").verdict == .hit)
    }

    @Test func `a response whose lifetime is over before its body is there for its followers only`() throws {
        let resource = try Resource()
        var lead = try resource.leader("a")
        _ = try resource.outcome(lead.head(ByteSlice("head")))
        // As if that had been long ago.
        try resource.connection.send("DEL", resource.stream("a"))
        try resource.connection.send("XADD", resource.stream("a"), "0-1", "h", "head", "t", "1000")
        _ = try resource.write("hello", &lead)
        var keeping = TierLead.Keeping()
        (keeping.fresh, keeping.lifetime) = (1, 1)
        #expect(try resource.outcome(lead.finish(keeping)) == .done)
        #expect(try resource.ask(nil).verdict == .miss)
        var reader = TierReader(ByteSlice("a"))
        _ = try reader.read(resource.connection.send(reader.command(resource.keys)))
        #expect(reader.state == .complete)
    }

    @Test func `the leader is told when its stream was evicted, and nobody follows it any more`() throws {
        let resource = try Resource()
        var lead = try resource.leader("a")
        _ = try resource.outcome(lead.head(ByteSlice("head")))
        #expect(try resource.write("hello", &lead) == .done)
        try resource.connection.send("DEL", resource.stream("a"))
        #expect(try resource.write("world", &lead) == .streamLost)
        #expect(try resource.outcome(lead.finish(.hour)) == .streamLost)
        // Nobody waits for the next one either, for as long as a lease: a full engine would take none of them.
        guard case .alone(1...60_000, isForOne: false) = try resource.ask("b").verdict else {
            Issue.record("somebody leads")
            return
        }
        #expect(try resource.names() == [resource.lease()])
    }

    @Test(arguments: ["0-1", "1-0", "6-0"])
    func `a stream that has lost an entry does not become a record`(id: String) throws {
        let resource = try Resource(id)
        var lead = try resource.leader("a")
        _ = try resource.outcome(lead.head(ByteSlice("head")))
        _ = try resource.write("hello", &lead)
        _ = try resource.write("world", &lead)
        try resource.connection.send("XDEL", resource.stream("a"), id)
        #expect(try resource.outcome(lead.finish(.hour)) == .streamLost)
        let answer = try resource.ask(nil)
        guard case .alone = answer.verdict else { Issue.record("somebody leads"); return }
        #expect(answer.stored == nil)
    }

    @Test func `content cannot be written twice, nor behind the end`() throws {
        let resource = try Resource()
        var lead = try resource.leader("a")
        _ = try resource.outcome(lead.head(ByteSlice("head")))
        var again = lead
        #expect(try resource.write("hello", &lead) == .done)
        #expect(throws: TierReplyError.self) { try resource.write("HELLO", &again) }
        #expect(try resource.outcome(lead.finish(.hour)) == .done)
        #expect(throws: TierReplyError.self) { try resource.write("more", &lead) }
        #expect(try resource.ask(nil).stored?.body() == "hello")
    }

    @Test func `a response that is not kept is there for its followers only`() throws {
        let resource = try Resource()
        try resource.store("a", keeping: .notKept)
        #expect(try resource.ask(nil).verdict == .miss)
        var reader = TierReader(ByteSlice("a"))
        _ = try reader.read(resource.connection.send(reader.command(resource.keys)))
        #expect(reader.state == .complete)
    }

    @Test func `a stale response comes with the answer who refreshes it`() throws {
        let resource = try Resource()
        try resource.store("a", keeping: .stale)
        let first = try resource.ask("b")
        #expect(first.verdict == .lead(left: 60_000))
        #expect(try first.stored?.body() == "hello")
        let second = try resource.ask("c")
        guard case .join(let leader, _) = second.verdict else { Issue.record("not joined"); return }
        #expect(String(leader) == "b")
        #expect(try second.stored?.body() == "hello")
    }

    @Test func `a response that is not fresh enough for somebody is refreshed`() throws {
        let resource = try Resource()
        try resource.store("a")
        var question = resource.question("b")
        question.stale = ByteSlice("a")
        let answer = try resource.ask(question)
        #expect(answer.verdict == .lead(left: 60_000))
        #expect(try answer.stored?.body() == "hello")
        #expect(try resource.ask("c").verdict == .hit)
    }

    @Test func `a refused record is dropped by the look-up that follows`() throws {
        let resource = try Resource()
        try resource.store("a")
        var question = resource.question("b")
        question.broken = ByteSlice("a")
        let answer = try resource.ask(question)
        #expect(answer.verdict == .lead(left: 60_000))
        #expect(answer.stored == nil)
        #expect(!(try resource.names().contains(resource.resource)))
    }

    @Test func `a 304 makes the response fresh for all, with its new head`() throws {
        let resource = try Resource()
        try resource.store("a", keeping: .stale)
        let lead = try resource.leader("b")
        let freshen = lead.freshen(ByteSlice("a"), with: ByteSlice("new head"), fresh: 5000, lifetime: 9_000_000)
        #expect(try resource.outcome(freshen) == .done)
        let answer = try resource.ask("c")
        #expect(answer.verdict == .hit)
        let stored = try #require(answer.stored)
        #expect(stored.freshened.map { String($0) } == "new head")
        #expect(stored.expires - stored.at == 9_000_000)
        #expect(try stored.body() == "hello")
        for name in [resource.resource, resource.stream("a")] {
            guard case .integer(let left) = try resource.connection.send("PTTL", name) else { continue }
            #expect(left > 8_900_000, "\(name)")
        }
    }

    @Test(arguments: ["replaced", "evicted", "without its stream"])
    func `a 304 for a response that is no longer there changes nothing`(event: String) throws {
        let resource = try Resource(event)
        try resource.store("a", keeping: .stale)
        let lead = try resource.leader("b")
        switch event {
        case "replaced":
            var question = resource.question("c")
            question.broken = ByteSlice("b")
            _ = try resource.ask(question)
            var other = TierLead(resource.keys, variant: .empty, token: ByteSlice("c"), lease: 60_000)
            _ = try resource.outcome(other.head(ByteSlice("head")))
            _ = try resource.outcome(other.finish(.stale))
            _ = try resource.ask("b")
        case "evicted": try resource.connection.send("DEL", resource.resource)
        default: try resource.connection.send("DEL", resource.stream("a"))
        }
        let freshen = lead.freshen(ByteSlice("a"), with: ByteSlice("new"), fresh: 5000, lifetime: 9000)
        #expect(try resource.outcome(freshen) == .streamLost)
        let answer = try resource.ask(nil)
        #expect(answer.verdict == .miss)
        #expect(answer.stored?.freshened == nil)
    }

    @Test func `the stream of a replaced response ends soon, and its readers can finish`() throws {
        let resource = try Resource()
        try resource.store("a", keeping: .stale)
        try resource.store("b", "other")
        guard case .integer(let left) = try resource.connection.send("PTTL", resource.stream("a")) else { return }
        #expect((200_000...240_000).contains(left))
        #expect(try resource.ask(nil).stored?.body() == "other")
    }

    @Test func `a resource has no more variants than a machine keeps`() throws {
        let resource = try Resource()
        for number in 0..<510 {
            var keeping = TierLead.Keeping.hour
            keeping.lifetime += number * 1000
            try resource.store("t\(number)", "", keeping: keeping, "accept", "v\(number)")
        }
        #expect(try resource.connection.send("HLEN", resource.resource) == .integer(501))
        // The ones that expire first have gone.
        #expect(try resource.ask(nil, vary: "accept", "v0").verdict == .miss)
        #expect(try resource.ask(nil, vary: "accept", "v509").verdict == .hit)
    }
}
