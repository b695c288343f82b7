import Foundation

/// The project's measurements:
///
///     Benchmark compare [--quick] [--rows NAME,…] [--write FILE] [--coalesced PATH] [--bare PATH]
///     Benchmark micro NAME COUNT        one piece of the hot path, COUNT times
///     Benchmark micro [--write FILE]    a table of all pieces, counted by callgrind
///     Benchmark micro --check           fails when a piece takes more than its limit in Micro.swift
///     Benchmark single-flight [--check | --write FILE]
///                                       the library beside an actor of ten lines and the bare minimum; --check fails
///                                       when it takes more than its limit in SingleFlight.swift
///     Benchmark origin PORT             the origin alone, for profiles
///     Benchmark load PORT PATH LENGTH SECONDS [in-turns]
///                                       the load alone, of 64 connections, on core 1
///     Benchmark storm ORIGIN-PORT PORT WAITERS TIMES
///                                       an origin, and crowds that wait for its response in two halves, on core 1;
///                                       says when a crowd asks and when it has its responses
///     Benchmark purges [--program] [RESPONSES]
///                                       purges of prefixes at once in a store of a million, and look-ups meanwhile; or
///                                       the same through the program, and hits meanwhile
///     Benchmark tags [--program] [RESPONSES]
///                                       a purge of a tag that a tenth of a million responses have, and look-ups
///                                       meanwhile; or the same through the program, and requests meanwhile
///     Benchmark shared [--quick] [--write FILE] [--coalesced PATH]
///                                       machines that share a tier on a redis-server of their own, beside nginx behind
///                                       nginx
///     Benchmark tls [--quick] [--write FILE] [--coalesced PATH]
///                                       TLS beside nginx and HAProxy: hits, handshakes, passes, idle connections
///     Benchmark http2 [--quick] [--write FILE] [--coalesced PATH]
///                                       hits over HTTP/2 beside nginx and HAProxy, by h2load; idle connections
///     Benchmark simulate [--quick | --write FILE]
///                                       hit ratios of the eviction code against other policies
@main
struct Main {
    static func main() async {
        do {
            try await run()
        } catch {
            // Foundation's own errors describe themselves in code.
            let reason = error is CocoaError ? error.localizedDescription : "\(error)"
            FileHandle.standardError.write(Data("Benchmark: \(reason)\n".utf8))
            exit(1)
        }
    }

    private static func run() async throws {
        var words = Array(CommandLine.arguments.dropFirst())
        guard !words.isEmpty else { usage() }
        switch words.removeFirst() {
        case "compare": try compare(words)
        case "micro": try micro(words)
        case "single-flight": try await singleFlight(words)
        case "origin":
            guard let port = words.first.flatMap({ Int($0) }) else { usage() }
            let origin = try Origin(port: port)
            while true { withExtendedLifetime(origin) { System.nap(milliseconds: 1000) } }
        case "load": load(words)
        case "storm": try storm(words)
        case "purges":
            let entries = words.last.flatMap { Int($0) } ?? 1_000_000
            let table =
                try words.first == "--program" ? ProgramPurges.table(entries: entries) : Purges.table(entries: entries)
            say(Machine.stamp + table)
        case "tags":
            let entries = words.last.flatMap { Int($0) } ?? 1_000_000
            let table =
                try words.first == "--program"
                ? ProgramPurges.tagTable(entries: entries) : TagPurges.table(entries: entries)
            say(Machine.stamp + table)
        case "shared": try table(words, "shared tier") { try SharedTier.table($0) }
        case "tls": try table(words, "TLS") { try SecureTable.table($0) }
        case "http2": try table(words, "HTTP/2") { try HTTP2Table.table($0) }
        case "simulate":
            if words.first == "--write", words.count == 2 { try Document.check(words[1]) }
            let report = Simulation.report(isQuick: words.contains("--quick"))
            say(Machine.stamp + report.everything)
            if words.first == "--write", words.count == 2 {
                try Document.put(Machine.stamp + report.summary, between: "simulation", in: words[1])
            }
        default: usage()
        }
    }

    private static func usage() -> Never {
        say(
            "usage: Benchmark compare|micro|single-flight|simulate|shared|tls|http2|purges|tags|origin|load|storm; see Sources/Benchmark/Main.swift"
        )
        exit(64)
    }

    private static func compare(_ words: [String]) throws {
        var plan = Plan()
        var file: String?
        var wanted: Set<Substring> = []
        var rest = words[...]
        while let word = rest.popFirst() {
            switch word {
            case "--quick": plan.isQuick = true
            case "--write": file = rest.popFirst()
            case "--coalesced": plan.coalesced = rest.popFirst() ?? plan.coalesced
            case "--bare": plan.bare = rest.popFirst() ?? plan.bare
            case "--rows": wanted = Set((rest.popFirst() ?? "").split(separator: ","))
            default: usage()
            }
        }
        try expectPrograms([plan.coalesced, plan.bare])
        if let file { try Document.check(file) }
        plan.folder = NSTemporaryDirectory() + "proxy-bench-\(getpid())"
        try FileManager.default.createDirectory(atPath: plan.folder, withIntermediateDirectories: true)
        defer {
            try? FileManager.default.removeItem(atPath: plan.folder)
            Peer.cleanUp()
        }
        let before = Machine.Use()
        let comparison = try Comparison(plan)
        defer { comparison.stop() }
        var failed = ""
        for (name, isQuick, measure) in comparison.rows
        where wanted.isEmpty ? (isQuick || !plan.isQuick) : wanted.contains(name) {
            do {
                try measure()
            } catch {
                say("\(name): \(error)")
                failed += "- *\(name)* could not be measured: \(error)\n"
            }
        }
        // A child's CPU time counts as the benchmark's own only when the child has ended.
        comparison.stop()
        let goals =
            Machine.description(plan, use: before.text(until: Machine.Use())) + failed + "\n"
            + Goals(comparison.report).table
        let (costs, figures) = (comparison.report.summary, comparison.report.table)
        say([goals, costs, figures].joined(separator: "\n"))
        if let file {
            try Document.put(goals, between: "goals", in: file)
            try Document.put(costs, between: "costs", in: file)
            if let sentence = comparison.report.crowdSentence {
                try Document.put(sentence, between: "crowd", in: "README.md")
            }
        }
        if !failed.isEmpty { throw Problem("not every row could be measured; see above") }
    }

    private static func expectPrograms(_ paths: [String]) throws {
        for program in paths where !FileManager.default.isExecutableFile(atPath: program) {
            throw Problem("no program at \(program): build it, and begin in the folder of the package; see make bench")
        }
    }

    /// - Parameter name: of the place in the document.
    private static func table(_ words: [String], _ name: String, _ make: (Plan) throws -> String) throws {
        var plan = Plan()
        var file: String?
        var rest = words[...]
        while let word = rest.popFirst() {
            switch word {
            case "--quick": plan.isQuick = true
            case "--write": file = rest.popFirst()
            case "--coalesced": plan.coalesced = rest.popFirst() ?? plan.coalesced
            default: usage()
            }
        }
        try expectPrograms([plan.coalesced])
        if let file { try Document.check(file) }
        plan.folder = NSTemporaryDirectory() + "proxy-bench-\(getpid())"
        try FileManager.default.createDirectory(atPath: plan.folder, withIntermediateDirectories: true)
        defer {
            try? FileManager.default.removeItem(atPath: plan.folder)
            Peer.cleanUp()
        }
        let table = try make(plan)
        say(table)
        if let file { try Document.put(table, between: name, in: file) }
    }

    private static func load(_ words: [String]) {
        guard words.count >= 4, let port = Int(words[0]), let length = Int(words[2]), let seconds = Double(words[3])
        else { usage() }
        System.pin(toCore: 1)
        let began = System.processTime
        let takesTurns = words.dropFirst(4).first == "in-turns"
        var loop = Load(path: words[1], connections: takesTurns ? 256 : 64, length: length, sharesCore: takesTurns)
            .loop(port: port, isBare: false)
        loop.run(nanoseconds: Int64(seconds * 1e9)) { _ in }
        let used = System.processTime - began - loop.idle
        let (requests, elapsed) = (Double(loop.answers + loop.wrong), Double(loop.elapsed))
        say(
            """
            \((requests / elapsed * 1e9).short) requests/s, \(loop.wrong) wrong, \(loop.failures) failed; p50 \
            \(loop.latencies.percentile(50).short) µs, p99 \(loop.latencies.percentile(99).short), p99.9 \
            \(loop.latencies.percentile(99.9).short); load \((Double(used) / requests / 1000).short) µs a request, \
            busy \((100 * Double(used) / elapsed).short) %
            """)
    }

    private static func storm(_ words: [String]) throws {
        let numbers = words.compactMap { Int($0) }
        guard numbers.count == 4 else { usage() }
        System.raiseDescriptorLimit()
        System.pin(toCore: 1)
        let origin = try Origin(port: numbers[0])
        for time in 0..<numbers[3] {
            let crowd = Crowd(port: numbers[1], count: numbers[2])
            guard crowd.count == numbers[2] else { throw Problem("only \(crowd.count) connections were taken") }
            System.nap(milliseconds: 300)
            origin.expectStorm()
            say("asking")
            System.nap(milliseconds: 50)
            crowd.ask("/s/2048/\(time)")
            System.nap(milliseconds: 300)
            origin.release()
            _ = crowd.answers(within: 20)
            say("answered")
            System.nap(milliseconds: 50)
        }
    }

    private static func micro(_ words: [String]) throws {
        if words.count == 2, let count = Int(words[1]) {
            guard let piece = Micro.pieces.first(where: { $0.name == words[0] }) else { usage() }
            piece.run(count)
        } else if words == ["--check"] {
            let counts = Micro.count(Micro.pieces.filter { $0.limit != nil })
            for count in counts {
                say(
                    "\(count.piece.name): \(count.instructions?.short ?? "valgrind failed") of \(count.piece.limit?.short ?? "any") instructions"
                        + (count.isWithin ? "" : "  ** too many **"))
            }
            exit(counts.allSatisfy(\.isWithin) ? 0 : 1)
        } else {
            if words.first == "--write", words.count == 2 { try Document.check(words[1]) }
            let table = Machine.stamp + Micro.table(Micro.count())
            say(table)
            if words.first == "--write", words.count == 2 { try Document.put(table, between: "micro", in: words[1]) }
        }
    }

    private static func singleFlight(_ words: [String]) async throws {
        var times: [SingleFlight.Times] = []
        for row in SingleFlight.rows where words != ["--check"] || row.limit != nil {
            var measured = try await SingleFlight.measure(row)
            // Only a machine that is busy with something else gives another answer the second time.
            if !measured.isWithin { measured = try await SingleFlight.measure(row) }
            times.append(measured)
        }
        let table = SingleFlight.table(times)
        say(table)
        if words.first == "--write", words.count == 2 {
            try Document.put(Machine.stamp + table, between: "single-flight", in: words[1])
        }
        guard words != ["--check"] || times.allSatisfy(\.isWithin) else {
            throw Problem("single flight takes more than its limit in SingleFlight.swift")
        }
    }
}
