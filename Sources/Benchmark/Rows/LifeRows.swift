import Glibc

/// Starting, reloading, and a second worker.
extension Comparison {
    func starts() throws {
        var line = Line(row: "start", figure: "ms to first answer", cells: [:])
        for kind in missing { line.cells[kind] = .unable("not installed") }
        var times: [Kind: [Double]] = [:]
        for turn in 0..<(plan.isQuick ? 2 : 5) {
            for kind in turn % 2 == 0 ? kinds : kinds.reversed() {
                let program = try start(kind)
                times[kind, default: []].append(program.startTime * 1000)
                program.stop()
            }
        }
        for (kind, all) in times { line.cells[kind] = .number(all.median, note: ", \(all.spread)") }
        report.add(line)
    }

    func reloads() throws {
        let kinds = [Kind.coalesced, .haproxy, .nginx].filter { programs[$0] != nil }
        var failed = Line(row: "reload under load", figure: "failed requests", cells: [:])
        var slowest = Line(row: "reload under load", figure: "p99.9 µs", cells: [:])
        for kind in missing { failed.cells[kind] = .unable("not installed") }
        failed.cells[.bare] = .unable("cannot")
        failed.cells[.varnish] = .unable("not measured: has a command, no signal")
        slowest.cells = failed.cells
        var results: [Kind: [Load.Result]] = [:]
        for turn in 0..<plan.repeats {
            for kind in turn % 2 == 0 ? kinds : kinds.reversed() {
                let program = try start(kind, Program.Options(reloads: true))
                Caller.fetch(["/c/1024/hit"], size: 1024, port: program.port)
                var reloads: Int64 = 0
                let result = run(Load(path: "/c/1024/hit", length: 1024), against: program, seconds: 2) {
                    milliseconds in
                    guard reloads < 3, milliseconds >= (reloads + 1) * 450 else { return }
                    reloads += 1
                    program.signal(kind == .haproxy ? SIGUSR2 : SIGHUP)
                }
                if let result { results[kind, default: []].append(result) }
                program.stop()
            }
        }
        for (kind, all) in results {
            let failures = all.map { $0.errors + $0.wrong }
            failed.cells[kind] = .number(failures.median, note: ", \(failures.spread)")
            slowest.cells[kind] = .number(all.map(\.p999).median, note: ", \(all.map(\.p999).spread)")
        }
        report.add(failed)
        report.add(slowest)
    }

    /// Two cores carry servers and load, so requests per second mean little: the measure is CPU per request. With
    /// ordinary requests, the load takes nearly one of the cores, and the worker that shares this core finds the load's
    /// requests in its caches, so that a factor above 2 is possible. With pipelined requests, the load takes little,
    /// and both workers are at work most of the time: this row shows how much they hinder each other.
    func twoWorkers() throws {
        // So many connections that neither worker runs out of requests while the load has its turn.
        let load = Load(path: "/c/1024/hit", connections: 256, length: 1024, sharesCore: true)
        var pipelined = load
        pipelined.pipelined = 16
        for (name, load) in [("two workers", load), ("two workers, 16 pipelined", pipelined)] {
            var line = Line(row: name, figure: "times one, by CPU")
            for kind in missing { line.cells[kind] = .unable("not installed") }
            for kind in kinds { line.cells[kind] = try scaling(kind, load) }
            report.add(line)
        }
    }

    private func scaling(_ kind: Kind, _ load: Load) throws -> Line.Cell {
        // The bare responder counts request heads in either case, since the load may be pipelined.
        let programs = try [1, 2].map {
            try start(
                kind, Program.Options(workers: $0, words: kind != .bare ? [] : $0 == 2 ? ["twice"] : ["counting"]))
        }
        for program in programs { Caller.fetch(["/c/1024/hit"], size: 1024, port: program.port) }
        var costs = programs.map { _ in [Double]() }
        for turn in 0..<plan.repeats {
            for place in turn % 2 == 0 ? [0, 1] : [1, 0] {
                if let result = run(load, against: programs[place], seconds: plan.seconds) {
                    costs[place].append(result.cpu.total)
                }
            }
        }
        for program in programs { program.stop() }
        let (one, two) = (costs[0].median, costs[1].median)
        return .number(2 * one / two, note: " (\(one.short) → \(two.short) µs)")
    }
}
