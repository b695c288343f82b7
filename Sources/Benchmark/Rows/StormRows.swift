import Synchronization

/// The rows of storms: many clients that wait for one fetch.
extension Comparison {
    private struct Outcome {
        var first = 0.0, last = 0.0, cpu = 0.0, peak = 0.0, fetches = 0.0, failed = 0
        /// Nanoseconds of the monotonic clock at which the last response came. The crowd leaves afterwards.
        var end: Int64 = 0
    }

    /// - Parameter kind: `s` for a response that comes in two halves, `w` for one that comes whole.
    private func storm(_ program: Program, waiters: Int, kind: String = "s", name: String) -> Outcome? {
        let crowd = Crowd(port: program.port, count: waiters)
        guard crowd.count == waiters else { return nil }
        System.nap(milliseconds: 100)
        origin.expectStorm()
        program.tree.forgetPeak()
        let resident = program.tree.resident
        let (times, spent) = measured(program) {
            let before = program.tree.cpu
            crowd.ask("/\(kind)/2048/\(name)")
            System.nap(milliseconds: 300)
            origin.release()
            return (crowd.answers(within: 20), program.tree.cpu - before)
        }
        let seen = origin.stormSeen
        let answered = times.filter { $0.last > 0 }
        return Outcome(
            first: Double((answered.map(\.first).max() ?? 0) - seen.firstByte) / 1e6,
            last: Double((answered.map(\.last).max() ?? 0) - seen.lastByte) / 1e6,
            cpu: spent.total / Double(waiters), peak: Double(max(0, program.tree.peak - resident)) / Double(waiters),
            fetches: Double(seen.fetches), failed: waiters - answered.count, end: answered.map(\.last).max() ?? 0)
    }

    private static let costPerWaiter = "CPU µs/waiter"

    func storms() throws {
        try storms(of: 1000, row: "1,000 waiters")
        guard !plan.isQuick else { return }
        try storms(of: 10_000, row: "10,000 waiters")
        try storms(of: 10_000, row: "10,000 waiters, whole", kind: "w")
    }

    /// The first storm of a fresh program shows the memory that waiters take: later storms reuse the heap that the
    /// first one has grown. Times and CPU are measured on programs that have been through storms.
    private func storms(of waiters: Int, row: String, kind form: String = "s") throws {
        var first: [Kind: Outcome] = [:]
        var all: [Kind: [Outcome]] = [:]
        var unable: [Kind: String] = [:]
        // HAProxy needs a connection to the origin for each waiter, beside the waiter's own.
        if waiters > 1000 { unable[.haproxy] = "cannot: fetches for each, more than `maxconn`" }
        for kind in missing { unable[kind] = "not installed" }
        for kind in kinds where unable[kind] == nil && kind != .bare {
            let program = try start(kind)
            first[kind] = storm(program, waiters: waiters, kind: form, name: "\(waiters)-first")
            program.stop()
        }
        try withBare(2048, ["holding"]) { programs in
            for turn in 0..<min(3, plan.repeats) {
                let order = turn % 2 == 0 ? kinds : kinds.reversed()
                for kind in order where unable[kind] == nil {
                    guard let program = programs[kind] else { continue }
                    let outcome = storm(program, waiters: waiters, kind: form, name: "\(waiters)-\(turn)")
                    if let outcome {
                        all[kind, default: []].append(outcome)
                    } else {
                        unable[kind] = "takes fewer connections"
                    }
                }
            }
        }
        func add(_ figure: String, _ value: (Outcome) -> Double, note: (Kind, [Outcome]) -> String = { _, _ in "" }) {
            var line = Line(row: row, figure: figure, cells: unable.mapValues { .unable($0) })
            for (kind, outcomes) in all where unable[kind] == nil {
                // The bare responder fetches nothing: only the cost of its writes is a meaningful figure.
                let isTelling = kind != .bare || figure == Self.costPerWaiter
                line.cells[kind] =
                    isTelling
                    ? .number(outcomes.map(value).median, note: note(kind, outcomes)) : .unable("cannot: no fetch")
            }
            report.add(line)
        }
        add("first byte, ms after origin", \.first)
        add("last byte, ms after origin", \.last) { _, outcomes in
            let failed = outcomes.reduce(0) { $0 + $1.failed }
            return failed > 0 ? ", \(failed) never" : ""
        }
        add(Self.costPerWaiter, \.cpu) { kind, outcomes in
            ", \(outcomes.map(\.cpu).spread)" + (first[kind].map { "; its first \($0.cpu.short)" } ?? "")
        }
        var memory = Line(row: row, figure: "peak bytes/waiter, first storm", cells: unable.mapValues { .unable($0) })
        memory.cells[.bare] = .unable("cannot: no fetch")
        for (kind, outcome) in first where unable[kind] == nil { memory.cells[kind] = .number(outcome.peak) }
        report.add(memory)
        add("fetches", \.fetches)
    }

    /// One client requests a stored response every millisecond during the storm: until the storm's last response, and
    /// until the storm's clients have left. This client has the load's core for itself whenever it wants; otherwise it
    /// would measure the storm's own clients.
    func otherURLInStorm() throws {
        let waiters = plan.isQuick ? 1000 : 10_000
        var none: [Kind: Line.Cell] = [
            .bare: .unable("cannot: no fetch"), .haproxy: .unable("cannot: a fetch each"),
        ]
        for kind in missing { none[kind] = .unable("not installed") }
        func line(_ figure: String) -> Line { Line(row: "another URL in a storm", figure: figure, cells: none) }
        var calm = line("p99 µs, unloaded")
        var (stormy, ratio) = (line("p99 µs, \(waiters) waiters"), line("p99 ÷ unloaded"))
        var (leaving, leavingRatio) = (line("p99 µs, and until they have left"), line("the same ÷ unloaded"))
        // One storm gives only some hundred responses, and their 99th percentile is a matter of luck.
        var unloaded: [Kind: [Double]] = [:]
        var loaded: [Kind: [Double]] = [:]
        var whole: [Kind: [Double]] = [:]
        for round in 0..<(plan.isQuick ? 1 : 7) {
            let order = [Kind.coalesced, .nginx, .varnish]
            for kind in round % 2 == 0 ? order : order.reversed() {
                guard let program = programs[kind] else { continue }
                Self.settle(programs.values)
                Caller.fetch(["/c/1024/hit"], size: 1024, port: program.port)
                let quiet = Prober(port: program.port)
                System.nap(milliseconds: 1500)
                unloaded[kind, default: []].append(quiet.finish().map(\.latency).percentile(99))
                let loud = Prober(port: program.port)
                let end = storm(program, waiters: waiters, name: "other\(round)-")?.end ?? .max
                let answers = loud.finish()
                loaded[kind, default: []]
                    .append(answers.prefix { $0.asked < end }.map(\.latency).percentile(99))
                whole[kind, default: []].append(answers.map(\.latency).percentile(99))
            }
        }
        for (kind, quiet) in unloaded {
            let before = quiet.percentile(50)
            let (during, all) = ((loaded[kind] ?? []).percentile(50), (whole[kind] ?? []).percentile(50))
            calm.cells[kind] = .number(before)
            stormy.cells[kind] = .number(during)
            ratio.cells[kind] = .number(during / before)
            leaving.cells[kind] = .number(all)
            leavingRatio.cells[kind] = .number(all / before)
        }
        for line in [calm, stormy, ratio, leaving, leavingRatio] { report.add(line) }
    }

    /// Waits until no program of `programs` has work left: a program that closes the connections of a storm, or frees
    /// its memory, shares the core of the next one.
    private static func settle(_ programs: some Collection<Program>) {
        for _ in 0..<50 {
            let before = programs.map(\.tree.cpu.total)
            System.nap(milliseconds: 100)
            let used = zip(programs, before).map { $0.tree.cpu.total - $1 }
            if used.allSatisfy({ $0 < 1000 }) { return }
        }
    }
}

/// Requests one stored response every millisecond, on a thread with precedence over others.
final class Prober: Sendable {
    struct Answer {
        /// Nanoseconds of the monotonic clock.
        var asked: Int64
        /// Microseconds.
        var latency: Double
    }

    private struct State {
        var answers: [Answer] = []
        var isStopping = false
        var hasStopped = false
    }

    private let state = Mutex(State())

    init(port: Int) {
        System.startThread { [state = Reference(self)] in
            System.prefersThisThread(true)
            guard let caller = Caller(port: port) else { return state.prober.stopped() }
            while !state.prober.isStopping {
                let asked = System.now
                caller.ask("/c/1024/hit")
                guard caller.answer() != nil else { break }
                state.prober.add(Answer(asked: asked, latency: Double(System.now - asked) / 1000))
                System.nap(milliseconds: 1)
            }
            state.prober.stopped()
        }
    }

    private struct Reference: Sendable {
        let prober: Prober
        init(_ prober: Prober) { self.prober = prober }
    }

    private var isStopping: Bool { state.withLock { $0.isStopping } }
    private func add(_ answer: Answer) { state.withLock { $0.answers.append(answer) } }
    private func stopped() { state.withLock { $0.hasStopped = true } }

    /// The responses in the order in which they came.
    func finish() -> [Answer] {
        state.withLock { $0.isStopping = true }
        while !state.withLock({ $0.hasStopped }) { System.nap(milliseconds: 1) }
        return state.withLock { $0.answers }
    }
}
