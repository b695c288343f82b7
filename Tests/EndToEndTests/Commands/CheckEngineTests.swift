import Testing

/// `check` and the start tell how the engine of the shared tier is bounded.
@Suite(.scenario) struct CheckEngineTests {
    private func check(_ url: String, _ words: String...) throws -> Program.Run {
        let file = "upstreams: [{name: a, servers: http://127.0.0.1:9000}]\nshared:\n  engine: \(url)\n"
        return try Program.run(["check", "--config", "@/c.yaml"] + words, files: ["c.yaml": file])
    }

    @Test func `an engine without a bound is warned of, with the remedy`() throws {
        let engine = try RedisEngine()
        let run = try check(engine.url)
        #expect(run.exit == .code(0) && run.output.hasSuffix(": ok\n"), "\(run.everything)")
        #expect(
            run.errors.contains("/c.yaml:3:3: warning: \(engine.url) has no bound on its memory")
                && run.errors.contains("set `maxmemory`"), "\(run.errors)")
        let flagged = try check("redis://127.0.0.1:1", "--shared", engine.url)
        #expect(flagged.errors.hasPrefix("--shared: warning: \(engine.url) has no bound"), "\(flagged.errors)")
        // The settings alone are printed without asking anybody.
        #expect(try check(engine.url, "--print").errors == "")
    }

    @Test(arguments: [
        ("volatile-lfu", nil), ("allkeys-lfu", nil), ("noeviction", "evicts nothing"),
        ("allkeys-random", "may evict the log of purges"), ("volatile-ttl", "evicts first what is being fetched"),
    ])
    func `a bounded engine is warned of by its policy`(_ policy: String, _ text: String?) throws {
        let engine = try RedisEngine(["--maxmemory", "64mb", "--maxmemory-policy", policy])
        let run = try check(engine.url)
        #expect(run.exit == .code(0))
        if let text { #expect(run.errors.contains(text)) } else { #expect(run.errors == "") }
    }

    @Test func `an engine that cannot be asked is a warning, soon`() throws {
        let engine = try RedisEngine(["--requirepass", "secret"])
        #expect(try check(engine.url).errors.contains("NOAUTH"))
        try engine.command(["-a", "secret", "ACL", "SETUSER", "default", "-info"])
        let forbidden = try check(engine.url.replacing("unix:", with: "unix://:secret@"))
        #expect(forbidden.exit == .code(0) && forbidden.errors.contains("`+info`"), "\(forbidden.errors)")
        #expect(!forbidden.everything.contains("secret"))

        let gone = try check("redis://127.0.0.1:1")
        #expect(gone.exit == .code(0) && gone.errors.contains("cannot be asked for its bounds"), "\(gone.errors)")
        // It takes connections, and never answers.
        let silent = try Socket.listen()
        defer { Socket.close(silent.descriptor) }
        let took = try ContinuousClock().measure {
            let run = try check("redis://127.0.0.1:\(silent.port)")
            #expect(run.exit == .code(0) && run.errors.contains("127.0.0.1:\(silent.port)"), "\(run.errors)")
        }
        #expect(took > .milliseconds(900) && took < .seconds(2) + aStall)
    }

    @Test func `a program that starts tells of it as well`() throws {
        let (origin, engine) = (try ScriptedOrigin(), try RedisEngine())
        defer { origin.stop() }
        let proxy = try Program.serve(
            servers: [origin.url], [.workers(1), .other(section: "shared", key: "engine", value: engine.url)])
        defer { proxy.stop() }
        try eventually("it is in the log") { proxy.diagnostics.contains("has no bound on its memory") }
    }
}
