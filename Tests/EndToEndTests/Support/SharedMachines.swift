import Glibc
import Testing

/// Three programs in front of one origin, which share a tier on one engine.
struct SharedMachines {
    /// All machines are asked for the same URLs, whatever their ports.
    static let site = "Host: site.test"

    let proxies: [Program]
    /// What stands between each machine and the engine; none unless asked for.
    let relays: [EngineRelay]

    /// Runs `body` with machines that have found the engine, and read the log of purges. Records a machine, other than the
    /// first, that has ended meanwhile.
    /// - Parameters:
    ///   - advertises: whether each machine says where the others reach it.
    ///   - isRelayed: whether there is a relay before each machine.
    static func run(
        _ settings: Setting..., advertises: Bool = false, isRelayed: Bool = false,
        body: (ScriptedOrigin, SharedMachines, RedisEngine) throws -> Void
    ) throws {
        let (origin, engine) = (try ScriptedOrigin(), try RedisEngine())
        defer { origin.stop() }
        let relays = try (0..<(isRelayed ? 3 : 0)).map { try EngineRelay(to: engine, number: $0) }
        defer { for relay in relays { relay.stop() } }
        // Machines read from one another only if they know one another.
        let secret = "\(engine.folder)/secret"
        try System.write(String(repeating: "s", count: 32), to: secret)
        let proxies = try (0..<3).map {
            try start(
                origin, isRelayed ? relays[$0].url : engine.url, settings, secret: advertises ? secret : nil)
        }
        defer { for proxy in proxies { proxy.stop() } }
        for proxy in proxies { try waitForTier(proxy) }
        try body(origin, SharedMachines(proxies: proxies, relays: relays), engine)
        // A test may end the first by a signal, and upgrade others, whose former programs end well.
        for proxy in proxies.dropFirst() {
            guard let exit = proxy.exit(), exit != .code(0) else { continue }
            Issue.record("a program ended (\(exit)):\n\(proxy.diagnostics.suffix(2000))")
        }
    }

    private static func start(
        _ origin: ScriptedOrigin, _ engine: String, _ settings: [Setting], secret: String?
    ) throws -> Program {
        // A busy machine must not make a program do without the engine.
        let timeout = settings.contains { $0.entry.key == "timeout" } ? [] : [Setting.sharedTimeout("300ms")]
        let all = settings + timeout + [.workers(2), .other(section: "shared", key: "engine", value: engine)]
        guard let secret else { return try Program.serve(servers: [origin.url], all) }
        let address = "127.0.0.1:\(try Socket.freePort())"
        return try Program.serve(
            servers: [origin.url],
            all + [
                .other(section: "shared", key: "advertise", value: "http://\(address)"),
                .other(section: "shared", key: "secret-file", value: secret),
            ],
            arguments: ["--listen", address])
    }

    /// Two workers and the log of purges are connected.
    static func waitForTier(_ proxy: Program) throws {
        try eventually("the tier is in use") {
            let tier = try proxy.status()["shared"]
            return tier?["connections"]?.number == 3 && tier?["knows_purges"] == .bool(true)
        }
    }

    /// How often an event of the tier came, on all machines.
    func count(_ event: String) throws -> Int {
        try proxies.reduce(0) { sum, proxy in
            let events = try proxy.status()["shared"]?["events"]?.elements ?? []
            return sum + Int(events.first { $0["event"]?.string == event }?["count"]?.number ?? 0)
        }
    }

    /// The responses to a GET at each machine, or at those with these numbers.
    func texts(_ target: String, of numbers: Int...) throws -> [String] {
        try (numbers.isEmpty ? Array(proxies.indices) : numbers).map {
            try proxies[$0].send("GET", target, [Self.site]).text
        }
    }

    /// Waits until the tier is in use again: a page that no machine has is fetched once for all.
    func waitUntilWell(_ origin: ScriptedOrigin, within limit: Duration = .seconds(3) + aStall) throws {
        origin.on("/well") { _ in [.answer(200, "Cache-Control: max-age=600", body: "well")] }
        var round = 0
        try eventually("the machines share again", within: limit) {
            round += 1
            let before = origin.count("/well")
            for text in try texts("/well?\(round)") where text != "well" { return false }
            return origin.count("/well") == before + 1
        }
    }
}

extension Setting {
    static func sharedTimeout(_ time: String) -> Setting { .other(section: "shared", key: "timeout", value: time) }
}
