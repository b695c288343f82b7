import Bytes
import SharedTier
import Testing

/// An engine that is full, or to which somebody else writes.
@Suite struct ForeignTests {
    @Test func `a full engine still answers, and takes no content`() throws {
        let engine = try Engine()
        let resource = try Resource(engine)
        try resource.store("a", keeping: .stale)
        var lead = try resource.leader("b")
        _ = try resource.outcome(lead.head(ByteSlice("head")))
        try resource.connection.send("CONFIG", "SET", "maxmemory", "1")
        let refused = #expect(throws: TierReplyError.self) { try resource.write("hello", &lead) }
        guard case .refused(let text) = refused else { Issue.record("not refused"); return }
        #expect(String(text).hasPrefix("OOM"))
        #expect(try resource.outcome(lead.renewal) == .done)
        #expect(try resource.outcome(lead.release) == .done)
        let answer = try resource.ask("c")
        #expect(answer.verdict == .lead(left: 60_000))
        #expect(try answer.stored?.body() == "hello")
        var other = TierLead(resource.keys, variant: .empty, token: ByteSlice("c"), lease: 60_000)
        #expect(throws: TierReplyError.self) { try resource.outcome(other.head(ByteSlice("head"))) }
        #expect(try resource.outcome(other.unshare(for: 1000, isForOne: true)) == .done)
        let log = TierKeys.purges(prefix: ByteSlice("co"))
        guard case .text = try resource.connection.send(TierPurge(.everything, .empty, isSoft: false).command(log: log))
        else { Issue.record("no purge"); return }
    }

    @Test(arguments: [
        "", "x", "a 5", "a 5 1 2", "a -5 1 2 3", "a 5 1 2 3e9", "* 5 1 2 9999999999999", "a b c d e", "a 5 1 2 3\r\n",
        "{x} 5 1 2 9999999999999", "a 5 99999999999999999999999999 9 9", "a 5 1 2 99999999999999999999",
        "a 99999999999999999999 1 2 9999999999999", "a 5 9223372036854775807 2 9999999999999",
    ])
    func `a record that no function wrote is a miss, and is dropped`(text: String) throws {
        let resource = try Resource(text)
        try resource.connection.send("HSET", resource.resource, "r:", text)
        #expect(try resource.ask("b").verdict == .lead(left: 60_000))
        #expect(!(try resource.names().contains(resource.resource)))
    }

    @Test(arguments: ["evil", "-", "--"])
    func `nobody waits for a lease that ends too late, or never`(token: String) throws {
        let resource = try Resource(token)
        try resource.connection.send("SET", resource.lease(), token)
        #expect(try resource.ask("a").verdict == .lead(left: 60_000))
        try resource.connection.send("SET", resource.lease(), token, "PX", "61000")
        #expect(try resource.ask(nil).verdict == .miss)
        #expect(try resource.ask("b").verdict == .lead(left: 60_000))
        guard case .join = try resource.ask("c").verdict else { Issue.record("not joined"); return }
    }

    @Test(arguments: ["resource", "lease", "stream"])
    func `a key of another type is refused, and harms no other resource`(which: String) throws {
        let resource = try Resource(which)
        let name = which == "resource" ? resource.resource : which == "lease" ? resource.lease() : resource.stream("a")
        try resource.connection.send("SADD", name, "x")
        #expect(throws: TierReplyError.self) {
            var lead = try resource.leader("a")
            _ = try resource.outcome(lead.head(ByteSlice("head")))
        }
        #expect(try Resource(which).ask("a").verdict == .lead(left: 60_000))
    }

    @Test func `entries that somebody put into a stream are refused, and their record is dropped`() throws {
        let resource = try Resource()
        var lead = try resource.leader("a")
        _ = try resource.outcome(lead.head(ByteSlice("head")))
        try resource.connection.send("XADD", resource.stream("a"), "3-0", "d", "evil")
        // As a leader that waits for no reply.
        _ = try? resource.write("hello", &lead)
        #expect(try resource.outcome(lead.finish(.hour)) == .done)
        let stored = try #require(try resource.ask("b").stored)
        #expect(try stored.pieces().state == .refused(.gap))
        var question = resource.question("b")
        question.broken = stored.token
        #expect(try resource.ask(question).verdict == .lead(left: 60_000))
    }

    @Test(arguments: [
        TierValue.none, .integer(1), .text(ByteSlice("hit")), .list([]), .error(ByteSlice("ERR x")),
        .list([.text(ByteSlice("hit")), .text(ByteSlice("a")), .integer(0), .integer(0)]),
        .list([.text(ByteSlice("hat")), .text(ByteSlice("a")), .integer(0), .integer(0)]),
        .list([.integer(1), .text(ByteSlice("a")), .integer(0), .integer(0)]),
        .list([.text(ByteSlice("miss")), .text(ByteSlice("a")), .integer(0), .none]),
        .list([.text(ByteSlice("miss")), .text(ByteSlice("a")), .integer(0), .integer(.min)]),
        .list([.text(ByteSlice("miss")), .text(ByteSlice("a")), .integer(0), .integer(.max)]),
        .list([.text(ByteSlice("join")), .text(ByteSlice("a")), .integer(-1), .integer(1)]),
        .list([.text(ByteSlice("join")), .text(.empty), .integer(1), .integer(1)]),
        .list([.text(ByteSlice("miss")), .text(ByteSlice("a")), .integer(0), .integer(0), .list([.integer(1)])]),
    ])
    func `a reply that no function gives is no answer`(reply: TierValue) {
        #expect(throws: TierReplyError.self) { try TierAnswer(reply) }
        #expect(throws: TierReplyError.self) { try TierPurgeNews(reply) }
        var reader = TierReader(ByteSlice("a"))
        if reply != .list([]) { #expect(throws: TierReplyError.self) { try reader.read(reply) } }
        if reply != .integer(1) { #expect(throws: TierReplyError.self) { try TierOutcome(reply) } }
    }
}
