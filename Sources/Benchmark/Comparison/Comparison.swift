import Foundation

/// `make bench`: every row, one table from one run.
struct Comparison {
    let plan: Plan
    let origin: Origin
    let report = Report()
    /// The long-running instances that most rows use.
    private(set) var programs: [Kind: Program] = [:]
    let missing: [Kind]

    /// What the kernel needs of it at most, for a log, connections and what is stored, in one run.
    private let spareMemory = System.SpareMemory(256 << 20)

    init(_ plan: Plan) throws {
        self.plan = plan
        System.raiseDescriptorLimit()
        System.pin(toCore: 1)
        origin = try Origin(port: 19_000 + Int(getpid()) % 1000)
        missing = Kind.peers.filter { !Shell.has($0 == .varnish ? "varnishd" : $0.rawValue) }
        for kind in Kind.allCases where kind != .bare && !missing.contains(kind) {
            programs[kind] = try Program(kind, plan: plan, origin: origin.port)
        }
    }

    /// Kinds that can be started, ours first.
    var kinds: [Kind] { Kind.allCases.filter { !missing.contains($0) } }

    func start(_ kind: Kind, _ options: Program.Options = Program.Options()) throws -> Program {
        try Program(kind, options, plan: plan, origin: origin.port)
    }

    /// Measures something of `program` while the kernel has memory at hand.
    func measured<Outcome>(_ program: Program, _ body: () -> Outcome) -> Outcome {
        spareMemory.lend()
        defer {
            program.emptyLog()
            spareMemory.takeBack()
        }
        return body()
    }

    func run(_ load: Load, against program: Program, seconds: Double, during: (Int64) -> Void = { _ in }) -> Load.Result? {
        measured(program) { load.run(against: program, origin, seconds: seconds, during: during) }
    }

    /// Of the row that a goal of 15 % hangs on: the runs of one turn lie side by side, so their ratio moves less than the figures do.
    static let pairedRatio = "CPU ÷ bare, pair by pair"

    /// Runs `load` against `contenders`, in an order that turns around with every repeat, and adds the usual lines.
    ///
    /// - Parameter pairs: so many turns of ours and the bare responder are compared pair by pair. Those that go beyond the plan's repeats count for nothing else.
    func measure(
        _ row: String, _ load: Load, _ contenders: [Kind: Program], unable: [Kind: String] = [:], latencies: Bool = true, pairs: Int = 0
    ) {
        var results: [Kind: [Load.Result]] = [:]
        var ratios: [Kind: [Double]] = [:]
        for turn in 0..<max(plan.repeats, pairs) {
            let order = Kind.allCases.filter {
                contenders[$0] != nil && unable[$0] == nil && (turn < plan.repeats || $0 == .coalesced || $0 == .bare)
            }
            var turnResults: [Kind: Load.Result] = [:]
            for kind in turn % 2 == 0 ? order : order.reversed() {
                if let program = contenders[kind] { turnResults[kind] = run(load, against: program, seconds: plan.seconds) }
            }
            for (kind, result) in turnResults {
                if turn < plan.repeats { results[kind, default: []].append(result) }
                if let bare = turnResults[.bare], kind != .bare { ratios[kind, default: []].append(result.cpu.total / bare.cpu.total) }
            }
        }
        func add(_ figure: String, note: ([Load.Result]) -> String = { _ in "" }, _ value: (Load.Result) -> Double) {
            var line = Line(row: row, figure: figure, cells: unable.mapValues { .unable($0) })
            for kind in missing { line.cells[kind] = .unable("not installed") }
            for (kind, all) in results { line.cells[kind] = .number(all.map(value).median, note: note(all)) }
            report.add(line)
        }
        add("CPU µs/request", note: { all in
            let wrong = all.reduce(0) { $0 + $1.errors + $1.wrong }
            let parts = " (\(all.map(\.cpu.user).median.short)+\(all.map(\.cpu.system).median.short)), \(all.map(\.cpu.total).spread)"
            return wrong > 0 ? "\(parts), \(Int(wrong)) failed" : parts
        }, \.cpu.total)
        if pairs > 0 {
            var line = Line(row: row, figure: Self.pairedRatio, cells: unable.mapValues { .unable($0) })
            for kind in missing { line.cells[kind] = .unable("not installed") }
            line.cells[.bare] = .number(1)
            for (kind, all) in ratios { line.cells[kind] = .number(all.median, note: ", \(all.spread) (\(all.count) pairs)") }
            report.add(line)
        }
        add("requests/s", \.perSecond)
        add("core busy %", note: { " (load \($0.map(\.loadBusy).median.short))" }, \.serverBusy)
        add("requests/s of a core, by CPU") { 1e6 / $0.cpu.total }
        guard latencies else { return }
        add("p50 µs", \.p50)
        add("p99 µs", \.p99)
        add("p99.9 µs", \.p999)
    }

    /// A bare responder with bodies of `bytes`, beside the long-running programs.
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
