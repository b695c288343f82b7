/// The memory of connections and stored responses, by the resident memory of a fresh process.
extension Comparison {
    func idleConnections() throws {
        // HAProxy counts its own descriptors, and the limit of open files is 20,000 on many machines. Fewer connections
        // would not do: a process's own growth would weigh more than the connections.
        let count = 9_800
        var line = Line(row: "idle connections", figure: "bytes each", cells: [:])
        for kind in missing { line.cells[kind] = .unable("not installed") }
        for kind in kinds {
            let program = try start(kind)
            Caller.fetch(["/c/1024/hit"], size: 1024, port: program.port)
            // One round before, so that pools and tables of the first clients are not counted.
            let first = Crowd(port: program.port, count: 64)
            first.ask("/c/1024/hit")
            _ = first.answers(within: 5)
            System.nap(milliseconds: 200)
            let before = program.tree.resident
            let crowd = Crowd(port: program.port, count: count)
            crowd.ask("/c/1024/hit")
            let answered = crowd.answers(within: 10).count { $0.last > 0 }
            System.nap(milliseconds: 700)
            let taken = Double(program.tree.resident - before) / Double(max(1, answered))
            line.cells[kind] = .number(taken, note: answered < count ? " (of \(answered))" : "")
            withExtendedLifetime((first, crowd)) {}
            program.stop()
        }
        report.add(line)
    }

    /// The heap allocations of a hit of 1 KiB, and its instructions in user mode: counted, not timed (`.ci/count`).
    func allocations() throws {
        let told = Shell.output([".ci/count", "hit", "\(plan.folder)/count.out", plan.coalesced]) ?? ""
        let words = told.split(whereSeparator: \.isWhitespace)
        func number(before unit: Substring) -> Double? {
            words.firstIndex(of: unit).flatMap { $0 > 0 ? Double(words[$0 - 1]) : nil }
        }
        guard let instructions = number(before: "instructions,"), let allocations = number(before: "allocations") else {
            throw Problem(".ci/count says: \(told.suffix(300))")
        }
        for (figure, value) in [(Self.allocated, allocations), ("instructions in user mode", instructions)] {
            report.add(Line(row: Self.counted, figure: figure, cells: [.coalesced: .number(value)]))
        }
    }

    static let counted = "hit, 1 KiB, counted", allocated = "heap allocations"

    /// The payload of each object, and the fields that any cache must keep, are subtracted. Not subtracted are the key,
    /// the status line and `Content-Length`, since a cache can make the latter two anew.
    func storedObjects() throws {
        let count = plan.isQuick ? 20_000 : 100_000
        var line = Line(
            row: "stored objects", figure: "bytes over head and payload",
            cells: [.bare: .unable("cannot: stores nothing")])
        let stored = Double(Origin.cacheable(1024).count - "HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n".utf8.count)
        for kind in missing { line.cells[kind] = .unable("not installed") }
        for kind in kinds where kind != .bare {
            if kind == .nginx { line.cells[kind] = .unable("cannot: a file each"); continue }
            if kind == .haproxy { line.cells[kind] = .unable("cannot: takes all at its start"); continue }
            let program = try start(kind)
            Caller.fetch((0..<1000).map { "/c/1024/warm\($0)" }, size: 1024, port: program.port)
            let before = program.tree.resident
            Caller.fetch((0..<count).map { "/c/1024/object\($0)" }, size: 1024, port: program.port)
            line.cells[kind] = .number(Double(program.tree.resident - before) / Double(count) - stored)
            program.stop()
        }
        report.add(line)
    }
}
