import Bytes
import SharedTier
import Testing

/// Who leads, and what becomes of a leader that has lost its lease.
@Suite struct LeaseTests {
    @Test func `the first machine leads, and all others join it`() throws {
        let resource = try Resource()
        #expect(try resource.ask("a").verdict == .lead(left: 60_000))
        for token in ["b", "c", nil] {
            guard case .join(let leader, let left) = try resource.ask(token).verdict else {
                Issue.record("not joined")
                continue
            }
            #expect(String(leader) == "a")
            #expect((1...60_000).contains(left))
        }
    }

    @Test func `a machine that does not fetch does not lead`() throws {
        let resource = try Resource()
        #expect(try resource.ask(nil).verdict == .miss)
        #expect(try resource.names() == [])
    }

    @Test(arguments: [
        "the lease ended", "it finished", "another took over", "unshared", "released", "the engine was emptied",
    ])
    func `a stale token can write nothing that others read`(event: String) throws {
        let engine = event.contains("emptied") ? try Engine() : try Engine.shared.get()
        let resource = try Resource(engine, event)
        var lead = try resource.leader("a")
        #expect(try resource.outcome(lead.head(ByteSlice("head"))) == .done)
        #expect(try resource.write("hello", &lead) == .done)
        switch event {
        case "the lease ended":
            try resource.connection.send("PEXPIRE", resource.lease(), "1")
            while try resource.connection.send("GET", resource.lease()) != .none {}
        case "it finished": #expect(try resource.outcome(lead.finish(.notKept)) == .done)
        case "another took over":
            var question = resource.question("b")
            question.broken = ByteSlice("a")
            #expect(try resource.ask(question).verdict == .lead(left: 60_000))
        case "unshared": #expect(try resource.outcome(lead.unshare(for: 60_000, isForOne: true)) == .done)
        case "released": #expect(try resource.outcome(lead.release) == .done)
        default: try resource.connection.send("FLUSHALL")
        }
        let before = try resource.connection.send("GET", resource.lease())
        #expect(try resource.outcome(lead.renewal) == .leaseLost)
        #expect(try resource.outcome(lead.finish(.hour)) == .leaseLost)
        #expect(
            try resource.outcome(lead.freshen(ByteSlice("a"), with: ByteSlice("x"), fresh: 1, lifetime: 1))
                == .leaseLost)
        #expect(try resource.outcome(lead.unshare(for: 60_000, isForOne: true)) == .leaseLost)
        #expect(try resource.outcome(lead.release) == .leaseLost)
        var late = TierLead(resource.keys, variant: .empty, token: ByteSlice("a"), lease: 60_000)
        #expect(try resource.outcome(late.head(ByteSlice("head"))) == .leaseLost)
        #expect(try resource.connection.send("GET", resource.lease()) == before)
        #expect(!(try resource.names().contains(resource.resource)))
    }

    @Test func `only the lease that is known to be broken is taken over`() throws {
        let resource = try Resource()
        _ = try resource.leader("a")
        var question = resource.question("b")
        question.broken = ByteSlice("z")
        guard case .join = try resource.ask(question).verdict else { Issue.record("took over"); return }
        question.broken = ByteSlice("a")
        #expect(try resource.ask(question).verdict == .lead(left: 60_000))
        // The next that knew of the same broken fetch joins the new one.
        question.token = ByteSlice("c")
        guard case .join(let leader, _) = try resource.ask(question).verdict else { Issue.record("took over"); return }
        #expect(String(leader) == "b")
    }

    @Test(arguments: [true, false]) func `a response that is not shared frees all followers, for a while`(
        isForOne: Bool
    )
        throws
    {
        let resource = try Resource()
        let lead = try resource.leader("a")
        // Longer than a busy machine takes for the next look-up.
        #expect(try resource.outcome(lead.unshare(for: 30_000, isForOne: isForOne)) == .done)
        guard case .alone(let left, isForOne) = try resource.ask("b").verdict else { Issue.record("waits"); return }
        #expect((1...30_000).contains(left))
        try resource.connection.send("DEL", resource.lease())
        let next = try resource.leader("b")
        #expect(try resource.outcome(next.unshare(for: 50, isForOne: isForOne)) == .done)
        while try resource.connection.send("GET", resource.lease()) != .none {}
        #expect(try resource.ask("c").verdict == .lead(left: 60_000))
    }

    @Test func `a renewal extends the lease and the stream`() throws {
        let resource = try Resource()
        var lead = try resource.leader("a")
        #expect(try resource.outcome(lead.renewal) == .done)
        _ = try resource.outcome(lead.head(ByteSlice("head")))
        for name in [resource.lease(), resource.stream("a")] { try resource.connection.send("PEXPIRE", name, "1000") }
        #expect(try resource.outcome(lead.renewal) == .done)
        for (name, least) in [(resource.lease(), 59_000), (resource.stream("a"), 239_000)] {
            guard case .integer(let left) = try resource.connection.send("PTTL", name) else { continue }
            #expect(left > least, "\(name)")
        }
    }

    @Test func `every key has an end, at every moment`() throws {
        let resource = try Resource()
        func check(_ moment: String) throws {
            let names = try resource.names()
            #expect(!names.isEmpty, "\(moment)")
            for name in names {
                guard case .integer(let left) = try resource.connection.send("PTTL", name) else { continue }
                #expect(left > 0, "\(name), \(moment)")
            }
        }
        var lead = try resource.leader("a")
        try check("leading")
        _ = try resource.outcome(lead.head(ByteSlice("head")))
        try check("head")
        _ = try resource.write("hello", &lead)
        try check("content")
        _ = try resource.outcome(lead.finish(.stale))
        try check("finished")
        lead = try resource.leader("b")
        _ = try resource.outcome(lead.freshen(ByteSlice("a"), with: ByteSlice("head"), fresh: 0, lifetime: 9000))
        try check("freshened")
        lead = try resource.leader("c")
        _ = try resource.outcome(lead.head(ByteSlice("head")))
        _ = try resource.outcome(lead.finish(.stale))
        try check("replaced")
        lead = try resource.leader("d")
        _ = try resource.outcome(lead.head(ByteSlice("head")))
        _ = try resource.outcome(lead.release)
        try check("released")
        lead = try resource.leader("e")
        _ = try resource.outcome(lead.unshare(for: 60_000, isForOne: true))
        try check("unshared")
    }
}
