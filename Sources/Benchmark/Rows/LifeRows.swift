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
            let result = Load(path: "/c/1024/hit", length: 1024).run(against: program, seconds: 2) { milliseconds in
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

    /// Two cores carry servers and load, so requests a second say nothing: CPU a request with one worker and with two does.
    func twoWorkers() throws {
        var line = Line(row: "two workers", figure: "times one, by CPU", cells: [.bare: .unable("cannot")])
        for kind in missing { line.cells[kind] = .unable("not installed") }
        for kind in kinds where kind != .bare {
            var costs: [Int: [Double]] = [:]
            var pair: [Int: Program] = [:]
            for workers in 1...2 {
                let program = try start(kind, Program.Options(workers: workers))
                Caller.fetch(["/c/1024/hit"], size: 1024, port: program.port)
                pair[workers] = program
            }
            for _ in 0..<plan.repeats {
                for workers in 1...2 {
                    guard let program = pair[workers] else { continue }
                    let result = Load(path: "/c/1024/hit", length: 1024, sharesCore: true).run(against: program, seconds: plan.seconds)
                    if let result { costs[workers, default: []].append(result.cpu.total) }
                }
            }
            let (one, two) = ((costs[1] ?? []).median, (costs[2] ?? []).median)
            line.cells[kind] = .number(2 * one / two, note: " (\(one.short) → \(two.short) µs)")
            for program in pair.values { program.stop() }
        }
        report.add(line)
    }
}
