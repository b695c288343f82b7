import Foundation

/// `Benchmark http2`: hits and idle connections over HTTP/2, beside nginx and HAProxy, with h2load as the client.
struct HTTP2Table {
    /// The connections of h2load, and the streams that each has at once.
    private struct Clients {
        var name: String
        var connections: Int
        /// 0: requests of HTTP/1.1.
        var streams: Int

        static let all = [
            Clients(name: "HTTP/1.1, 64 connections", connections: 64, streams: 0),
            Clients(name: "1 connection × 100 streams", connections: 1, streams: 100),
            Clients(name: "64 connections × 10 streams", connections: 64, streams: 10),
        ]
    }

    /// The figures of one run of h2load against a program.
    private struct Run {
        /// Processor time of the program a request, in µs.
        var cpu: Double
        var perSecond: Double
    }

    private let plan: Plan
    private let programs: [SecureProgram]
    private var lines: [String] = []

    private var turns: Int { plan.isQuick ? 3 : 7 }

    static func table(_ plan: Plan) throws -> String {
        guard Shell.has("h2load") else { throw Problem("h2load is not installed: apt install nghttp2-client") }
        let before = Machine.Use()
        System.raiseDescriptorLimit()
        System.pin(toCore: 1)
        let origin = try Origin(port: 19_000 + Int(getpid()) % 1000)
        let certificate = try SecureProgram.certificate(plan)
        let programs = try SecureProgram.Kind.allCases.filter(\.isInstalled).map {
            try SecureProgram($0, origin: origin.port, certificate: certificate, plan: plan)
        }
        defer { for program in programs { program.stop() } }
        var bench = HTTP2Table(plan: plan, programs: programs)
        let hits = try bench.hits()
        // Fresh processes, whose memory no former connection has grown.
        for program in programs { program.stop() }
        let fresh = try SecureProgram.Kind.allCases.filter(\.isInstalled).map {
            try SecureProgram($0, origin: origin.port, certificate: certificate, plan: plan)
        }
        defer { for program in fresh { program.stop() } }
        let idle = try HTTP2Table(plan: plan, programs: fresh).idle()
        return Machine.description(
            "medians of \(bench.turns) turns; TLS 1.3 with a P-256 key and AES-128-GCM",
            [Kind.coalesced, .haproxy, .nginx].map { "\($0.name): \(Peer.version($0, plan))" },
            use: before.text(until: Machine.Use())) + "\n" + hits + "\n" + idle
    }

    private init(plan: Plan, programs: [SecureProgram]) {
        self.plan = plan
        self.programs = programs
    }

    /// The table of hits.
    private mutating func hits() throws -> String {
        let names = SecureProgram.Kind.allCases.map(\.rawValue).joined(separator: " | ")
        var table =
            "| hit | CPU µs: \(names) | ÷ HTTP/1.1 | requests/s ÷ nginx | ÷ HAProxy |\n| --- "
            + String(repeating: "| ---: ", count: SecureProgram.Kind.allCases.count + 3) + "|\n"
        for (bytes, size, count) in [(1024, "1 KiB", 60_000), (100 << 10, "100 KiB", 6000)] {
            for isSecure in [false, true] {
                var base = Double.nan
                for clients in Clients.all {
                    let runs = try SecureProgram.figures(programs, turns: turns) {
                        try load($0, clients, isSecure, bytes, plan.isQuick ? count / 4 : count)
                    }
                    let ours = runs[.coalesced, default: []]
                    if clients.streams == 0 { base = ours.map(\.cpu).median }
                    let costs = SecureProgram.Kind.allCases.map { runs[$0].map { $0.map(\.cpu).median.short } ?? "—" }
                    // Turn by turn, since the speed of the machine changes.
                    let faster = [SecureProgram.Kind.nginx, .haproxy].map { kind in
                        runs[kind].map { zip(ours, $0).map { $0.perSecond / $1.perSecond }.median.short } ?? "—"
                    }
                    let ratio = clients.streams == 0 ? "" : (ours.map(\.cpu).median / base).short
                    let line =
                        "| \(size), \(isSecure ? "TLS" : "in the clear"), \(clients.name) | "
                        + (costs + [ratio] + faster).joined(separator: " | ") + " |"
                    say(line)
                    table += line + "\n"
                }
            }
        }
        return table
    }

    private func load(
        _ program: SecureProgram, _ clients: Clients, _ isSecure: Bool, _ bytes: Int, _ count: Int
    ) throws -> Run {
        _ = try answers(program, clients, isSecure, bytes, max(clients.connections, clients.streams))
        let before = program.tree.cpu
        let perSecond = try answers(program, clients, isSecure, bytes, count)
        return Run(cpu: (program.tree.cpu - before).total / Double(count), perSecond: perSecond)
    }

    private static func words(_ program: SecureProgram, _ clients: Clients, _ isSecure: Bool, _ bytes: Int) -> [String]
    {
        let port = isSecure ? program.secure : clients.streams == 0 ? program.plain : program.framed
        return ["h2load", "--threads", "1", "--clients", "\(clients.connections)"]
            + (clients.streams == 0 ? ["--h1"] : ["--max-concurrent-streams", "\(clients.streams)"])
            + ["--tls13-ciphers", "TLS_AES_128_GCM_SHA256"]
            + ["\(isSecure ? "https" : "http")://127.0.0.1:\(port)/c/\(bytes)/hit"]
    }

    /// - Returns: requests a second.
    private func answers(
        _ program: SecureProgram, _ clients: Clients, _ isSecure: Bool, _ bytes: Int, _ count: Int
    ) throws -> Double {
        let words = Self.words(program, clients, isSecure, bytes) + ["--requests", "\(count)"]
        guard let told = Shell.output(words) else { throw Problem("h2load does not end") }
        // "finished in 1.20s, 50000.00 req/s, 53.10MB/s", "status codes: 60000 2xx, …"
        let numbers = told.split(whereSeparator: { $0 == " " || $0 == "\n" })
        guard told.contains("status codes: \(count) 2xx"), let unit = numbers.firstIndex(of: "req/s,"), unit > 0,
            let perSecond = Double(numbers[unit - 1])
        else { throw Problem("\(program.kind.rawValue), \(words.joined(separator: " ")): \(told.suffix(600))") }
        return perSecond
    }

    /// The table of idle connections.
    private func idle() throws -> String {
        var table =
            "| KB of an idle connection | " + SecureProgram.Kind.allCases.map(\.rawValue).joined(separator: " | ")
            + " |\n| --- "
            + String(repeating: "| ---: ", count: SecureProgram.Kind.allCases.count) + "|\n"
        for isSecure in [false, true] {
            let sizes = try SecureProgram.figures(programs, turns: 1) {
                try idle($0, isSecure, plan.isQuick ? 500 : 2000)
            }
            let cells = SecureProgram.Kind.allCases.map { sizes[$0].map { $0.median.short } ?? "—" }
            let line = "| \(isSecure ? "TLS" : "in the clear") | \(cells.joined(separator: " | ")) |"
            say(line)
            table += line + "\n"
        }
        return table
    }

    /// Memory of a connection that has asked once and waits, in KB.
    private func idle(_ program: SecureProgram, _ isSecure: Bool, _ count: Int) throws -> Double {
        // A client of h2load asks once at its start, and once more in a thousand seconds.
        func open(_ connections: Int) throws -> Child {
            let clients = Clients(name: "", connections: connections, streams: 1)
            let words =
                Self.words(program, clients, isSecure, 1024) + ["--duration", "60", "--rps", "0.001"]
            return try Child(words, output: "\(plan.folder)/idle-\(connections)")
        }
        /// Waits until the program's memory has not changed for half a second.
        func settled() -> Int {
            var (last, since) = (0, System.now)
            while System.now - since < 500_000_000 {
                System.nap(milliseconds: 50)
                let size = program.tree.resident
                if size != last { (last, since) = (size, System.now) }
            }
            return last
        }
        let first = try open(100)
        defer { first.stop() }
        let before = settled()
        let others = try open(count)
        defer { others.stop() }
        return Double(settled() - before) / Double(count) / 1000
    }
}
