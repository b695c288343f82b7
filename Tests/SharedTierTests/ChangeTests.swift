import Bytes
import SharedTier
import Testing

/// The engine tells each machine when something that it read has changed, so that nobody has to ask again and again.
@Suite struct ChangeTests {
    /// A machine that is told, beside those that change things.
    private func machine(_ engine: Engine, _ resource: Resource) throws -> EngineConnection {
        try EngineConnection(engine.path, tracking: true)
    }

    @Test func `a follower is told of the head, of content and of the end, even before there is a stream`() throws {
        let engine = try Engine.shared.get()
        let resource = try Resource(engine)
        let follower = try machine(engine, resource)
        var lead = try resource.leader("a")
        var reader = TierReader(ByteSlice("a"))
        #expect(try reader.read(follower.send(reader.command(resource.keys))) == [])
        _ = try resource.outcome(lead.head(ByteSlice("head")))
        #expect(try follower.hears(of: resource.stream("a")))
        _ = try reader.read(follower.send(reader.command(resource.keys)))
        #expect(reader.state == .content)
        for _ in 0..<3 {
            _ = try resource.write("hello", &lead)
            #expect(try follower.hears(of: resource.stream("a")))
            _ = try reader.read(follower.send(reader.command(resource.keys)))
        }
        _ = try resource.outcome(lead.finish(.hour))
        #expect(try follower.hears(of: resource.stream("a")))
        _ = try reader.read(follower.send(reader.command(resource.keys)))
        #expect(reader.state == .complete)
    }

    @Test(arguments: ["renewed", "released", "unshared", "finished", "ended"])
    func `a machine that joined is told what becomes of the lease, from the look-up on`(event: String) throws {
        let engine = try Engine.shared.get()
        let resource = try Resource(engine, event)
        let follower = try machine(engine, resource)
        var lead = try resource.leader("a")
        _ = try resource.outcome(lead.head(ByteSlice("head")))
        // The look-up itself reads the lease.
        _ = try follower.send(resource.question("b").command(lease: 60_000))
        follower.forgetChanges()
        switch event {
        case "renewed": _ = try resource.outcome(lead.renewal)
        case "released": _ = try resource.outcome(lead.release)
        case "unshared": _ = try resource.outcome(lead.unshare(for: 1000, isForOne: true))
        case "finished": _ = try resource.outcome(lead.finish(.notKept))
        default:
            // The engine tells when it deletes the key: by itself perhaps much later, or as soon as anybody asks for it.
            try resource.connection.send("PEXPIRE", resource.lease(), "500")
            #expect(try follower.hears(of: resource.lease()))
            // On a machine that was held up, it has ended already.
            if try follower.send(TierReader.lease(resource.keys, .empty)) == .none { return }
            while try resource.connection.send("GET", resource.lease()) != .none {}
        }
        #expect(try follower.hears(of: resource.lease()))
        let leads = try TierReader(ByteSlice("a")).leads(follower.send(TierReader.lease(resource.keys, .empty)))
        #expect(leads == (event == "renewed"))
    }

    @Test(arguments: ["replaced", "freshened", "dropped"])
    func `a machine that got a response is told when another takes its place`(event: String) throws {
        let engine = try Engine.shared.get()
        let resource = try Resource(engine, event)
        try resource.store("a", keeping: .stale)
        let holder = try machine(engine, resource)
        _ = try holder.send(resource.question(nil).command(lease: 60_000))
        holder.forgetChanges()
        switch event {
        case "replaced": try resource.store("b", "other")
        case "freshened":
            let lead = try resource.leader("b")
            _ = try resource.outcome(lead.freshen(ByteSlice("a"), with: ByteSlice("new"), fresh: 1, lifetime: 9000))
        default: try resource.connection.send(TierPurge.drop(resource.keys))
        }
        #expect(try holder.hears(of: resource.resource))
    }

    @Test func `a machine is told of streams that are evicted, and when the engine was emptied`() throws {
        let engine = try Engine()
        let resource = try Resource(engine)
        try resource.store("a")
        let holder = try machine(engine, resource)
        // Redis 7.0 tracks the keys that a call of a function names, and not the stream, which the function finds.
        _ = try holder.send(TierReader(ByteSlice("a")).command(resource.keys))
        try resource.connection.send("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
        try resource.connection.send("CONFIG", "SET", "maxmemory", "1")
        #expect(try holder.hears(of: resource.stream("a")))
        try resource.connection.send("CONFIG", "SET", "maxmemory", "0")
        _ = try holder.send(resource.question(nil).command(lease: 60_000))
        try resource.connection.send("FLUSHALL")
        #expect(try holder.hears(of: "*"))
    }

    @Test func `a machine is told of a purge`() throws {
        let engine = try Engine()
        let resource = try Resource(engine)
        let other = try machine(engine, resource)
        let log = TierKeys.purges(prefix: ByteSlice("co"))
        _ = try other.send(TierPurgeNews.command(log: log, after: nil))
        other.forgetChanges()
        try resource.connection.send(TierPurge(.everything, .empty, isSoft: false).command(log: log))
        #expect(try other.hears(of: "co:purge"))
    }
}
