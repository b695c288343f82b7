import Glibc
import Testing

@Suite(.scenario) struct DemoCommandTests {
    @Test func `the demo starts, prints curl lines, and its pages work`() throws {
        let program = try Program(folder: System.makeTemporaryFolder(), ["demo", "--listen", "127.0.0.1:0"])
        defer { program.stop() }
        let curl = #/curl\b[^\n]*?http://127\.0\.0\.1:(\d+)(/[^\s'";|&]*)/#
        try eventually("three lines to try; \(program.diagnostics)") {
            (program.output + program.diagnostics).matches(of: curl).count >= 3
        }
        let lines = (program.output + program.diagnostics).matches(of: curl).map {
            (port: UInt16($0.output.1)!, path: String($0.output.2))
        }
        #expect(Set(lines.map(\.path)).count >= 4)
        #expect((program.output + program.diagnostics).contains(#/curl -ik https://127\.0\.0\.1:[1-9]\d*/slow\n/#))
        for line in lines where line.path != "/metrics" {
            let answer = try Address(endpoint: .tcp(line.port)).get(line.path)
            #expect(
                answer.isClean && answer.status != 404 && answer["via"]?.contains("coalesced") ?? false, "\(line.path)")
        }
        // The page that takes two seconds collapses: that is what the demo is for.
        let crowd = Address(endpoint: .tcp(lines[0].port)).crowd(20, get: lines[0].path)
        #expect(crowd.finished().allSatisfy { $0.isClean })
        program.terminate()
        #expect(try program.exited() == .code(0))
    }

    // MARK: Several machines

    /// A demo of three machines, once it has printed what to try.
    private func machines(_ body: (Program, _ machines: [Address], _ processes: [pid_t]) throws -> Void) throws {
        let program = try Program(
            folder: System.makeTemporaryFolder(), ["demo", "--machines", "3", "--listen", "127.0.0.1:0"])
        defer { program.stop() }
        try eventually("it says how to stop; \(program.diagnostics)", within: .seconds(20)) {
            program.output.contains("Press Control-C")
        }
        let machines = program.output.matches(of: #/machine \d +http://127\.0\.0\.1:(\d+) +process (\d+)/#)
        let engine = try #require(program.output.firstMatch(of: #/redis-server of their own \(process (\d+)\)/#))
        try #require(machines.count == 3)
        try body(
            program, machines.map { Address(endpoint: .tcp(UInt16($0.output.1)!)) },
            (machines.map(\.output.2) + [engine.output.1]).map { pid_t($0)! })
    }

    private func isRunning(_ process: pid_t) -> Bool {
        // The state is behind the name, which is in parentheses; nobody may have asked for the exit status of a zombie.
        guard let state = System.contents(of: "/proc/\(process)/stat").split(separator: ")").last else { return false }
        return !state.hasPrefix(" Z") && !state.hasPrefix(" X")
    }

    @Test func `three machines fetch a page once, a purge reaches all, and one that fails is not missed`() throws {
        try machines { program, machines, processes in
            let crowds = machines.map { $0.crowd(5, get: "/slow", "Host: demo") }
            #expect(crowds.allSatisfy { $0.finished().allSatisfy { $0.isClean && $0.text.hasSuffix("fetch 1\n") } })
            #expect(program.output.matches(of: /origin: GET \/slow/).count == 1, "\(program.output)")
            // As the printed lines say.
            let line = try #require(program.output.firstMatch(of: #/coalesced purge --admin (\S+) (\S+);/#))
            let purge = try Program.run("purge", "--admin", String(line.output.1), String(line.output.2))
            #expect(purge.exit == .code(0), "\(purge.everything)")
            try eventually("another machine has it no more", within: .seconds(5)) {
                try machines[2].send("GET", "/slow", ["Host: demo"]).text.hasSuffix("fetch 2\n")
            }
            Spawn.signal(processes[2], SIGKILL)
            try eventually("it is told of") { program.diagnostics.contains("machine 3: it was killed by signal 9") }
            #expect(try machines[0].send("GET", "/slow", ["Host: demo"]).text.hasSuffix("fetch 2\n"))
            program.terminate()
            #expect(try program.exited() == .code(0))
            #expect(!processes.contains(where: isRunning))
            let socket = line.output.1.dropFirst("unix:".count)
            #expect(socket.hasPrefix("/") && !System.exists(String(socket.prefix(upTo: socket.lastIndex(of: "/")!))))
        }
    }

    @Test func `a demo that is killed takes its programs with it`() throws {
        try machines { program, _, processes in
            #expect(processes.allSatisfy(isRunning))
            program.signal(SIGKILL)
            try eventually("all have ended") { !processes.contains(where: isRunning) }
        }
    }

    @Test func `without a redis-server the demo says how to install one`() throws {
        let program = try Program(
            folder: System.makeTemporaryFolder(), ["demo", "--machines", "2", "--listen", "127.0.0.1:0"],
            variables: ["PATH=/nowhere"])
        defer { program.stop() }
        #expect(try program.exited() == .code(69))
        #expect(program.diagnostics.contains("apt install redis-server"), "\(program.diagnostics)")
    }

    @Test(arguments: [["--machines", "0"], ["--machines", "9"], ["--machines", "3", "--listen", "127.0.0.1:65534"]])
    func `a number of machines that cannot be is refused`(_ words: [String]) throws {
        let run = try Program.run(["demo"] + words)
        #expect(
            run.exit == .code(64) && run.errors.contains(words.count == 2 ? "--machines" : "ports"), "\(run.errors)")
    }
}
