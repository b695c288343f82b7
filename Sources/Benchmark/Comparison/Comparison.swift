import Foundation

/// `make bench`: every row, one table from one run.
struct Comparison {
    let plan: Plan
    let origin: Origin
    let report: Report
    /// The long-running instances that most rows use.
    private(set) var programs: [Kind: Program] = [:]
    let missing: [Kind]

    /// The most memory that the kernel needs in one run, for a log, connections and stored responses.
    private let spareMemory = System.SpareMemory(256 << 20)

    init(_ plan: Plan) throws {
        self.plan = plan
        report = Report()
        System.raiseDescriptorLimit()
        System.pin(toCore: 1)
        origin = try Origin(port: 19_000 + Int(getpid()) % 1000)
        missing = Kind.peers.filter { !Shell.has($0 == .varnish ? "varnishd" : $0.rawValue) }
        for kind in Kind.allCases where kind != .bare && !missing.contains(kind) {
            programs[kind] = try Program(kind, plan: plan, origin: origin.port)
        }
    }

    /// The name of each row, whether the quick run has it, and the function that measures it.
    var rows: [(name: Substring, isQuick: Bool, measure: () throws -> Void)] {
        [
            ("hits", true, hits),
            ("packaged", false, asPackaged),
            ("wrk", false, hitsByWrk),
            ("allocations", false, allocations),
            ("storms", true, storms),
            ("other", false, otherURLInStorm),
            ("misses", true, misses),
            ("passes", true, passes),
            ("zipf", false, zipfHits),
            ("pipelined", true, pipelinedHits),
            ("connections", true, newConnections),
            ("304", false, notModified),
            ("ranges", false, ranges),
            ("posts", false, posts),
            ("idle", true, idleConnections),
            ("objects", false, storedObjects),
            ("start", true, starts),
            ("reload", false, reloads),
            ("workers", false, twoWorkers),
            ("churn", false, churn),
        ]
    }

    /// The programs that can be started, coalesced first.
    var kinds: [Kind] { Kind.allCases.filter { !missing.contains($0) } }

    func start(_ kind: Kind, _ options: Program.Options = Program.Options()) throws -> Program {
        try Program(kind, options, plan: plan, origin: origin.port)
    }

    /// Measures `program` while the kernel has memory at hand.
    func measured<Outcome>(_ program: Program, _ body: () -> Outcome) -> Outcome {
        spareMemory.lend()
        defer {
            program.emptyLog()
            spareMemory.takeBack()
        }
        return body()
    }

    func run(_ load: Load, against program: Program, seconds: Double, during: (Int64) -> Void = { _ in }) -> Load
        .Result?
    {
        measured(program) { load.run(against: program, origin, seconds: seconds, during: during) }
    }

    /// Figures of rows on which a goal depends: the runs of one turn follow each other, so their ratio varies less than
    /// the figures do.
    static let byPairs = ", pair by pair", pairedCPU = "CPU" + byPairs, pairedRate = "requests/s" + byPairs

    func measure(
        _ row: String, _ load: Load, _ contenders: [Kind: Program], unable: [Kind: String] = [:],
        latencies: Bool = true, rivals: Set<Kind> = []
    ) {
        measure(row, contenders, unable: unable, latencies: latencies, rivals: rivals) {
            run(load, against: $0, seconds: plan.seconds)
        }
    }

    /// Runs a load against `contenders`, in an order that is reversed with every repeat, and adds the usual lines.
    ///
    /// - Parameters:
    ///   - rivals: these and coalesced run `plan.pairs` times instead of `plan.repeats`, and every contender is
    ///     compared with coalesced turn by turn.
    ///   - run: one run of the load.
    func measure(
        _ row: String, _ contenders: [Kind: Program], unable: [Kind: String] = [:], latencies: Bool = true,
        rivals: Set<Kind> = [], run: (Program) -> Load.Result?
    ) {
        var turns: [[Kind: Load.Result]] = []
        for turn in 0..<(rivals.isEmpty ? plan.repeats : plan.pairs) {
            let order = Kind.allCases.filter {
                contenders[$0] != nil && unable[$0] == nil
                    && (turn < plan.repeats || $0 == .coalesced || rivals.contains($0))
            }
            var results: [Kind: Load.Result] = [:]
            for kind in turn % 2 == 0 ? order : order.reversed() {
                if let program = contenders[kind] { results[kind] = run(program) }
            }
            turns.append(results)
        }
        func add(_ figure: String, _ cell: (Kind) -> Line.Cell?) {
            var line = Line(row: row, figure: figure, cells: unable.mapValues { .unable($0) })
            for kind in missing { line.cells[kind] = .unable("not installed") }
            for kind in contenders.keys { if let cell = cell(kind) { line.cells[kind] = cell } }
            report.add(line)
        }
        func addMedian(
            _ figure: String, note: ([Load.Result]) -> String = { _ in "" }, _ value: (Load.Result) -> Double
        ) {
            add(figure) { kind in
                let all = turns.compactMap { $0[kind] }
                return all.isEmpty ? nil : .number(all.map(value).median, note: note(all))
            }
        }
        /// Adds the figures of the other programs in units of coalesced's.
        func addPaired(_ figure: String, _ value: (Load.Result) -> Double) {
            guard !rivals.isEmpty else { return }
            add(figure) { kind in
                let ratios = turns.compactMap { turn in
                    turn[kind].flatMap { theirs in turn[.coalesced].map { value(theirs) / value($0) } }
                }
                if kind == .coalesced || ratios.isEmpty { return ratios.isEmpty ? nil : .number(1) }
                return .number(ratios.median, note: ", \(ratios.spread) (\(ratios.count) pairs)")
            }
        }
        addMedian(
            "CPU µs/request",
            note: { all in
                let wrong = all.reduce(0) { $0 + $1.errors + $1.wrong }
                let missed = all.reduce(0) { $0 + $1.missed }
                let parts =
                    " (\(all.map(\.cpu.user).median.short)+\(all.map(\.cpu.system).median.short)), \(all.map(\.cpu.total).spread)"
                return parts + (wrong > 0 ? ", \(Int(wrong)) failed" : "")
                    + (missed > 0 ? ", \(Int(missed)) were no hits" : "")
            }, \.cpu.total)
        addPaired(Self.pairedCPU, \.cpu.total)
        addMedian("requests/s", \.perSecond)
        addPaired(Self.pairedRate, \.perSecond)
        addMedian("core busy %", note: { " (load \($0.map(\.loadBusy).median.short))" }, \.serverBusy)
        addMedian("requests/s of a core, by CPU") { 1e6 / $0.cpu.total }
        guard latencies else { return }
        addMedian("p50 µs", \.p50)
        addMedian("p99 µs", \.p99)
        if turns.contains(where: { $0.values.contains { $0.p999.isFinite } }) { addMedian("p99.9 µs", \.p999) }
    }

    /// Calls `body` with a bare responder whose bodies have `bytes` bytes, beside the long-running programs.
    func withBare(_ bytes: Int, _ words: [String] = [], _ body: ([Kind: Program]) -> Void) throws {
        let bare = try start(.bare, Program.Options(memoryMiB: 1, bodyBytes: bytes, words: words))
        var all = programs
        all[.bare] = bare
        body(all)
        bare.stop()
    }

    func fetch(_ path: String, size: Int) {
        for program in programs.values { Caller.fetch([path, path], size: size, port: program.port) }
    }

    func stop() {
        for program in programs.values { program.stop() }
    }
}
