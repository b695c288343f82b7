/// The rows that a load drives.
extension Comparison {
    static let packaged = "hit, 1 KiB, as packaged, with a log"
    static let packagedPass = "pass, 1 KiB, as packaged, with a log"

    private static let sizes = [
        (0, "0"), (1024, "1 KiB"), (10_240, "10 KiB"), (102_400, "100 KiB"), (1 << 20, "1 MiB"),
    ]

    func hits() throws {
        for (size, name) in Self.sizes where !plan.isQuick || size == 1024 || size == 102_400 {
            fetch("/c/\(size)/hit", size: size)
            let rivals = size == 1024 || size >= 102_400 ? Set(Kind.allCases) : []
            try withBare(size) {
                measure("hit, \(name)", Load(path: "/c/\(size)/hit", length: size), $0, rivals: rivals)
            }
        }
    }

    /// Hits and passes as most people have them: every program as its package configures it, with a log of all
    /// requests.
    func asPackaged() throws {
        try withFresh(Program.Options(isAsPackaged: true), bare: Program.Options()) {
            for program in $0.values where program.kind != .bare {
                Caller.fetch(["/c/1024/hit", "/c/1024/hit"], size: 1024, port: program.port)
            }
            measure(Self.packaged, Load(path: "/c/1024/hit", length: 1024), $0, rivals: Set(Kind.allCases))
        }
        try withFresh(Program.Options(isAsPackaged: true)) { passes(Self.packagedPass, of: $0) }
    }

    /// The same hits, with a load generator of another project.
    func hitsByWrk() throws {
        guard Wrk.isInstalled else { throw Problem("wrk is not installed") }
        for (size, name) in Self.sizes where size == 1024 || size >= 102_400 {
            fetch("/c/\(size)/hit", size: size)
            let wrk = Wrk(path: "/c/\(size)/hit")
            try withBare(size) {
                measure("hit, \(name), by wrk", $0) { program in
                    measured(program) { wrk.run(against: program, seconds: plan.seconds) }
                }
            }
        }
    }

    /// Objects drawn by Zipf's law with exponent 0.9, as web traffic has it (Breslau et al., INFOCOM 1999).
    func zipfHits() throws {
        let count = 100_000
        for program in programs.values {
            Caller.fetch((0..<count).map { "/c/1024/z\(RequestText.name($0))" }, size: 1024, port: program.port)
        }
        // Objects of neighbouring ranks do not have neighbouring names.
        let drawn = Trace.zipf(200_000, objects: count, exponent: 0.9, seed: 4).requests.map { ($0 * 7919) % count }
        let load = Load(path: "/c/1024/z\(RequestText.number)", numbers: .drawn(drawn), length: 1024)
        try withBare(1024) { measure("hit, zipf over 100,000", load, $0) }
    }

    func pipelinedHits() throws {
        fetch("/c/1024/hit", size: 1024)
        let load = Load(path: "/c/1024/hit", pipelined: 16, length: 1024)
        try withBare(1024, ["counting"]) { measure("hit, 16 pipelined", load, $0, latencies: false) }
    }

    func newConnections() throws {
        fetch("/c/1024/hit", size: 1024)
        let load = Load(path: "/c/1024/hit", fields: "Connection: close\r\n", length: 1024, isRenewing: true)
        try withBare(1024, ["closing"]) { measure("hit, new connection each", load, $0) }
    }

    func notModified() throws {
        fetch("/c/1024/hit", size: 1024)
        let load = Load(path: "/c/1024/hit", fields: "If-None-Match: \"v1\"\r\n", status: 304, length: 0)
        try withBare(0) { measure("304", load, $0, latencies: false) }
    }

    func ranges() throws {
        fetch("/c/102400/range", size: 102_400)
        let load = Load(path: "/c/102400/range", fields: "Range: bytes=5000-6023\r\n", status: 206, length: 1024)
        try withBare(1024) {
            measure("range, 1 KiB of 100 KiB", load, $0, unable: [.haproxy: "cannot: sends it whole"], latencies: false)
        }
    }

    /// Each request is for an object that no other request asks for.
    private func missing(_ size: Int) -> Load {
        Load(path: "/c/\(size)/mRUN-\(RequestText.number)", numbers: .counting, length: size, isOfHits: false)
    }

    /// Programs that have not served a request yet, for rows in which the origin answers. The long-running programs
    /// would pay here for their past, such as a crowd's threads or a full memory.
    private func withFresh(
        _ options: Program.Options, bare: Program.Options = Program.Options(words: ["relaying"]),
        _ body: ([Kind: Program]) throws -> Void
    ) throws {
        var fresh: [Kind: Program] = [:]
        defer { for program in fresh.values { program.stop() } }
        for kind in kinds where kind != .bare { fresh[kind] = try start(kind, options) }
        fresh[.bare] = try start(.bare, bare)
        try body(fresh)
    }

    /// With memory for all responses: no program must evict while another does not.
    func misses() throws {
        try withFresh(Program.Options(memoryMiB: 2048)) { measure("stored miss, 1 KiB", missing(1024), $0) }
    }

    func passes() throws {
        try withFresh(Program.Options()) { passes("pass, 1 KiB", of: $0) }
    }

    private func passes(_ row: String, of programs: [Kind: Program]) {
        for program in programs.values where program.kind != .bare {
            Caller.fetch(["/p/1024/pass"], size: 1024, port: program.port)
        }
        measure(row, Load(path: "/p/1024/pass", length: 1024, isOfHits: false), programs, rivals: [.haproxy, .nginx])
    }

    func posts() throws {
        let load = Load(method: "POST", path: "/post", body: 1 << 20, connections: 8, length: 5, isOfHits: false)
        try withFresh(Program.Options()) {
            measure("POST of 1 MiB", load, $0, unable: [.bare: "cannot: relays what is small"], latencies: false)
        }
    }

    /// Misses with the memory full, so that each stored response evicts another one.
    func churn() throws {
        var small: [Kind: Program] = [:]
        for kind in kinds where kind != .bare {
            let program = try start(kind, Program.Options(memoryMiB: 32))
            Caller.fetch((0..<6000).map { "/c/10240/fill\($0)" }, size: 10_240, port: program.port)
            small[kind] = program
        }
        small[.bare] = try start(.bare, Program.Options(words: ["relaying"]))
        measure("eviction churn, 10 KiB in 32 MiB", missing(10_240), small, latencies: false)
        for program in small.values { program.stop() }
    }
}
