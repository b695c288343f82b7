import Foundation

/// `Benchmark tls`: what TLS costs, beside nginx and HAProxy with the same certificate. The figures are processor time
/// of the proxy: how fast the clients on the other core are does not matter.
struct SecureTable {
    private let plan: Plan
    private let origin: Origin
    private let certificate: String
    private let context: SecureCaller.Context
    private var lines: [String] = []

    private var turns: Int { plan.isQuick ? 3 : 7 }
    /// Clients that ask at the same time.
    private static let clients = 16

    static func table(_ plan: Plan) throws -> String {
        var bench = try SecureTable(plan)
        let before = Machine.Use()
        try bench.measure()
        return Machine.description(
            "medians of \(bench.turns) turns, TLS 1.3 with a P-256 key and AES-128-GCM, \(clients) clients at once",
            [Kind.coalesced, .haproxy, .nginx].map { "\($0.name): \(Peer.version($0, plan))" },
            use: before.text(until: Machine.Use()))
            + "\n| CPU µs | "
            + SecureProgram.Kind.allCases.map(\.rawValue).joined(separator: " | ") + " | ÷ nginx |\n| --- "
            + String(repeating: "| ---: ", count: SecureProgram.Kind.allCases.count + 1) + "|\n"
            + bench.lines.joined(separator: "\n") + "\n"
    }

    private init(_ plan: Plan) throws {
        self.plan = plan
        System.raiseDescriptorLimit()
        System.pin(toCore: 1)
        origin = try Origin(port: 19_000 + Int(getpid()) % 1000)
        certificate = try SecureProgram.certificate(plan)
        context = try SecureCaller.Context()
    }

    /// Adds a line, with the figure of each program that is installed.
    private mutating func add(_ name: String, _ figures: [SecureProgram.Kind: [Double]]) {
        let cells = SecureProgram.Kind.allCases.map { figures[$0].map { "\($0.median.short)" } ?? "—" }
        var ratio = "—"
        if let ours = figures[.coalesced], let theirs = figures[.nginx] {
            ratio = (ours.median / theirs.median).short
        }
        lines.append("| \(name) | \(cells.joined(separator: " | ")) | \(ratio) |")
        say(lines.last ?? "")
    }

    private mutating func measure() throws {
        let programs = try SecureProgram.Kind.allCases.filter(\.isInstalled).map {
            try SecureProgram($0, origin: origin.port, certificate: certificate, plan: plan)
        }
        defer { for program in programs { program.stop() } }
        for (bytes, name, count) in [(1024, "1 KiB", 4000), (100 << 10, "100 KiB", 400), (1 << 20, "1 MiB", 60)] {
            let rounds = (plan.isQuick ? count / 4 : count) / Self.clients + 1
            let plain = try SecureProgram.figures(programs, turns: turns) { program in
                try hits(program, program.plain, nil, bytes, rounds)
            }
            let secure = try SecureProgram.figures(programs, turns: turns) { program in
                try hits(program, program.secure, context, bytes, rounds)
            }
            add("hit of \(name) in the clear", plain)
            add("hit of \(name)", secure)
            if let above = secure[.coalesced]?.median, let below = plain[.coalesced]?.median {
                say("hit of \(name): TLS ÷ the clear \((above / below).short)")
            }
        }
        let count = plan.isQuick ? 200 : 1000
        add(
            "full handshake, with a request of 1 KiB",
            try SecureProgram.figures(programs, turns: turns) { try handshakes($0, count, resumed: false) })
        add(
            "resumed handshake, with a request of 1 KiB",
            try SecureProgram.figures(programs, turns: turns) { try handshakes($0, count, resumed: true) })
        add(
            "KB of an idle connection",
            try SecureProgram.figures(programs, turns: 1) { try idle($0, plan.isQuick ? 500 : 2000) })
        // nginx as the origin: its own time is not counted.
        let secureOrigin = try SecureProgram(
            .nginx, origin: origin.port, certificate: certificate, plan: plan)
        defer { secureOrigin.stop() }
        let passing = try SecureProgram.Kind.allCases.filter(\.isInstalled).map {
            try SecureProgram(
                $0, origin: secureOrigin.secure, originIsSecure: true, certificate: certificate, plan: plan)
        }
        defer { for program in passing { program.stop() } }
        add(
            "pass of 1 KiB in the clear to a TLS origin",
            try SecureProgram.figures(passing, turns: turns) { program in
                try requests(program, program.plain, nil, "/p/1024/x", 1024, (plan.isQuick ? 400 : 2000) / Self.clients)
            })
    }

    /// Processor time of a hit in µs.
    private func hits(
        _ program: SecureProgram, _ port: Int, _ context: SecureCaller.Context?, _ bytes: Int, _ rounds: Int
    ) throws -> Double {
        try requests(program, port, context, "/c/\(bytes)/hit", bytes, rounds)
    }

    private func requests(
        _ program: SecureProgram, _ port: Int, _ context: SecureCaller.Context?, _ path: String, _ bytes: Int,
        _ rounds: Int
    ) throws -> Double {
        let callers = (0..<Self.clients).compactMap { _ in SecureCaller(port: port, context) }
        guard callers.count == Self.clients else { throw Problem("\(program.kind.rawValue) takes no connection") }
        func round() throws {
            for caller in callers { caller.ask(path) }
            for caller in callers where !caller.answer(bytes) {
                throw Problem("\(program.kind.rawValue): no whole answer to \(path)")
            }
        }
        for _ in 0..<3 { try round() }
        let before = program.tree.cpu
        for _ in 0..<rounds { try round() }
        return (program.tree.cpu - before).total / Double(rounds * callers.count)
    }

    /// Processor time of a connection with one request, in µs.
    private func handshakes(_ program: SecureProgram, _ count: Int, resumed: Bool) throws -> Double {
        var session: SecureCaller.Session?
        func once() throws {
            guard let caller = SecureCaller(port: program.secure, context, resuming: resumed ? session : nil) else {
                throw Problem("\(program.kind.rawValue): a handshake fails")
            }
            caller.ask("/c/1024/hit")
            guard caller.answer(1024) else { throw Problem("\(program.kind.rawValue): no whole answer") }
            guard caller.isResumed == (resumed && session != nil) else {
                throw Problem("\(program.kind.rawValue) does not resume sessions")
            }
            session = caller.session
        }
        for _ in 0..<3 { try once() }
        let before = program.tree.cpu
        for _ in 0..<count { try once() }
        return (program.tree.cpu - before).total / Double(count)
    }

    /// Bytes of memory for each idle connection, in KB.
    private func idle(_ program: SecureProgram, _ count: Int) throws -> Double {
        var callers: [SecureCaller] = []
        func open(_ count: Int) throws {
            for _ in 0..<count {
                guard let caller = SecureCaller(port: program.secure, context) else {
                    throw Problem("\(program.kind.rawValue) takes no connection")
                }
                caller.ask("/c/1024/hit")
                guard caller.answer(1024) else { throw Problem("\(program.kind.rawValue): no whole answer") }
                callers.append(caller)
            }
        }
        try open(100)
        let before = program.tree.resident
        try open(count)
        return Double(program.tree.resident - before) / Double(count) / 1000
    }
}
