import Glibc

/// Starting, reloading, and a second worker.
extension Comparison {
    func starts() throws {
        var line = Line(row: "start", figure: "ms to first answer", cells: [:])
        for kind in missing { line.cells[kind] = .unable("not installed") }
        for kind in kinds {
            var times: [Double] = []
            for _ in 0..<(kind == .varnish ? 1 : 5) {
                let program = try start(kind)
                times.append(program.startTime * 1000)
                program.stop()
            }
            line.cells[kind] = .number(times.median)
        }
        report.add(line)
    }

    func reloads() throws {
        let kinds = [Kind.coalesced, .nginx].filter { programs[$0] != nil }
        var failed = Line(row: "reload under load", figure: "failed requests", cells: [:])
        var slowest = Line(row: "reload under load", figure: "p99.9 µs", cells: [:])
        for kind in [Kind.bare, .haproxy, .varnish] {
            failed.cells[kind] = .unable(kind == .bare ? "cannot" : "not measured: no signal for it")
            slowest.cells[kind] = failed.cells[kind]
        }
        for kind in kinds {
            let program = try start(kind)
            Caller.fetch(["/c/1024/hit"], size: 1024, port: program.port)
            var reloads: Int64 = 0
            let result = run(Load(path: "/c/1024/hit", length: 1024), against: program, seconds: 2) { milliseconds in
                guard reloads < 3, milliseconds >= (reloads + 1) * 450 else { return }
                reloads += 1
                program.signal(SIGHUP)
            }
            failed.cells[kind] = .number(result.map { $0.errors + $0.wrong } ?? .nan)
            slowest.cells[kind] = .number(result?.p999 ?? .nan)
            program.stop()
        }
        report.add(failed)
        report.add(slowest)
    }

    /// Two cores carry servers and load, so requests a second say nothing: CPU a request does. With ordinary requests the load takes nearly one of
    /// the cores, and the worker that shares it finds what that has sent in its caches, so that a factor above 2 is possible. With pipelined
    /// ones the load takes little and both workers are at work most of the time: what they keep each other from shows there.
    func twoWorkers() throws {
        // So many that neither worker runs out of them while the load has its turn.
        let load = Load(path: "/c/1024/hit", connections: 256, length: 1024, sharesCore: true)
        var pipelined = load
        pipelined.pipelined = 16
        for (name, load) in [("two workers", load), ("two workers, 16 pipelined", pipelined)] {
            var line = Line(row: name, figure: "times one, by CPU", cells: [.bare: .unable("cannot")])
            for kind in missing { line.cells[kind] = .unable("not installed") }
            for kind in kinds where kind != .bare { line.cells[kind] = try scaling(kind, load) }
            report.add(line)
        }
    }

    private func scaling(_ kind: Kind, _ load: Load) throws -> Line.Cell {
        let programs = try [1, 2].map { try start(kind, Program.Options(workers: $0)) }
        for program in programs { Caller.fetch(["/c/1024/hit"], size: 1024, port: program.port) }
        var costs = programs.map { _ in [Double]() }
        for _ in 0..<plan.repeats {
            for (place, program) in programs.enumerated() {
                if let result = run(load, against: program, seconds: plan.seconds) { costs[place].append(result.cpu.total) }
            }
        }
        for program in programs { program.stop() }
        let (one, two) = (costs[0].median, costs[1].median)
        return .number(2 * one / two, note: " (\(one.short) → \(two.short) µs)")
    }
}
