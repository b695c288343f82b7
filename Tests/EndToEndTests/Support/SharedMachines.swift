import Glibc
import Testing

/// Three programs in front of one origin, which share a tier on one engine.
struct SharedMachines {
    /// All machines are asked for the same URLs, whatever their ports.
    static let site = "Host: site.test"

    let proxies: [Program]

    /// Runs `body` with machines that have found the engine, and read the log of purges. Records a machine, other than the
    /// first, that has ended meanwhile.
    /// - Parameter advertises: whether each machine says where the others reach it.
    static func run(
        _ settings: Setting..., advertises: Bool = false,
        body: (ScriptedOrigin, SharedMachines, RedisEngine) throws -> Void
    ) throws {
        let (origin, engine) = (try ScriptedOrigin(), try RedisEngine())
        defer { origin.stop() }
        let proxies = try (0..<3).map { _ in
            try start(origin, engine, settings, advertises: advertises)
        }
        defer { for proxy in proxies { proxy.stop() } }
        for proxy in proxies { try waitForTier(proxy) }
        try body(origin, SharedMachines(proxies: proxies), engine)
        for proxy in proxies where proxy.exit() != nil && proxy !== proxies[0] {
            Issue.record("a program ended:\n\(proxy.diagnostics.suffix(2000))")
        }
    }

    private static func start(
        _ origin: ScriptedOrigin, _ engine: RedisEngine, _ settings: [Setting], advertises: Bool
    ) throws -> Program {
        let all = settings + [.workers(2), .other(section: "shared", key: "engine", value: engine.url)]
        guard advertises else { return try Program.serve(servers: [origin.url], all) }
        let address = "127.0.0.1:\(try Socket.freePort())"
        return try Program.serve(
            servers: [origin.url], all + [.other(section: "shared", key: "advertise", value: "http://\(address)")],
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
}
