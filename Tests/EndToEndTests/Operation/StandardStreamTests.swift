import Glibc
import Testing

/// Whoever reads what the program writes may be slow, stuck or gone: that is never a reason to stand still, nor to end.
@Suite(.scenario) struct StandardStreamTests {
    /// Nobody listens there.
    static let deadUpstream = "http://127.0.0.1:1"

    /// The program at a unix socket: its standard streams are not there to tell of a port.
    func serve(in folder: String, upstream: String, _ arguments: String..., shell: String? = nil) throws -> (
        program: Program, place: Address
    ) {
        let program = try Program(
            folder: folder, ["--listen", "unix:\(folder)/s", "--upstream", upstream, "--workers", "1"] + arguments,
            shell: shell)
        let place = Address(endpoint: .unix("\(folder)/s"))
        try eventually("it listens") { (try? place.connect()) != nil }
        return (program, place)
    }

    @Test func `a program whose messages are not read goes on, and ends normally`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        let gate = Gate()
        origin.on("/slow") { _ in [.head(200, "Content-Length: 10"), .text("01234"), .gate(gate), .text("56789")] }
        let folder = try System.makeTemporaryFolder()
        let messages = try Pipe(at: "\(folder)/stderr")
        let (program, place) = try serve(in: folder, upstream: origin.url)
        defer { program.stop() }
        let client = try place.connect()
        try client.send(place.request("GET", "/slow", ["Host: a"]))
        try client.progress { $0.body.length == 5 }
        messages.stopReading()
        program.signal(SIGHUP)
        try stays("a reload is survived", for: .milliseconds(200)) { program.exit() == nil }
        program.terminate()
        try stays("it waits for the download", for: .milliseconds(200)) { program.exit() == nil }
        gate.open()
        let answer = try client.answer()
        #expect(answer.text == "0123456789")
        #expect(try program.exited() == .code(0))
    }

    @Test(arguments: [[0], [1], [2], [0, 1, 2]])
    func `no file is opened in place of a closed standard stream`(_ closed: [Int]) throws {
        let folder = try System.makeTemporaryFolder()
        let closing = closed.map { "\($0)>&-" }.joined(separator: " ")
        let (program, place) = try serve(in: folder, upstream: Self.deadUpstream, shell: "exec \"$@\" \(closing)")
        defer { program.stop() }
        // Which is a line of the diagnostics log.
        #expect(try place.get("/x", "Host: a").status == 502)
        for number in 0...2 {
            let kept = ["/dev/null", "\(folder)/stdout", "\(folder)/stderr"][number]
            #expect(program.file(at: number) == (closed.contains(number) ? "/dev/null" : kept))
        }
        program.terminate()
        #expect(try program.exited() == .code(0))
    }

    @Test(
        arguments: [
            (["--version"], 74),
            (["--upstream", deadUpstream, "--access-log", "stdout", "--listen", "127.0.0.1:0"], 78),
        ] as [([String], Int32)])
    func `commands that need standard output fail if it is closed`(_ words: [String], _ code: Int32) throws {
        let program = try Program(folder: System.makeTemporaryFolder(), words, shell: "exec \"$@\" >&-")
        defer { program.stop() }
        #expect(try program.exited() == .code(code))
    }

    @Test func `a message longer than a page of the pipe does not block a worker if not read`() throws {
        let folder = try System.makeTemporaryFolder()
        let messages = try Pipe(at: "\(folder)/stderr", capacity: 8192)
        let (program, place) = try serve(in: folder, upstream: Self.deadUpstream)
        defer { program.stop() }
        var start = ""
        try eventually("it says where it listens and, last, where it forwards to") {
            start += messages.read()
            return start.contains("listening on") && start.contains(#/forwarding to .*\n/#)
        }
        // One page is taken then, one is free.
        #expect(try place.get("/short", "Host: a").status == 502)
        for number in 1...3 {
            let answer = try place.get("/\(number)" + String(repeating: "a", count: 7_900), "Host: a")
            #expect(answer.status == 502)
        }
        // Clipped, and whole lines only.
        let lines = messages.read().split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == 3 && lines[0].contains("/short") && lines[2].isEmpty)
        #expect(lines[1].utf8.count == 4095 && lines[1].hasSuffix("…"))
        program.terminate()
        #expect(try program.exited() == .code(0))
    }

    @Test func `suppressed messages are reported as a number, even if no more come`() throws {
        let folder = try System.makeTemporaryFolder()
        let messages = try Pipe(at: "\(folder)/stderr", capacity: 65_536)
        let (program, place) = try serve(in: folder, upstream: Self.deadUpstream)
        defer { program.stop() }
        for _ in 1...25 { #expect(try place.get("/x", "Host: a").status == 502) }
        var text = ""
        try eventually("the rest is told") {
            text += messages.read()
            return text.contains(#/\d+ more messages suppressed: failures of upstream \S+/#)
        }
    }

    @Test(arguments: ["stdout", "/dev/stdout", "@/log"])
    func `an access log that is not read does not delay the end`(_ target: String) throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
        let folder = try System.makeTemporaryFolder()
        let log = try Pipe(at: target == "@/log" ? "\(folder)/log" : "\(folder)/stdout")
        let (program, place) = try serve(
            in: folder, upstream: origin.url, "--access-log", target.replacing("@", with: folder))
        defer { program.stop() }
        let client = try place.connect()
        let requests = String(
            repeating: place.request("GET", "/x", ["Host: a", "User-Agent: " + String(repeating: "u", count: 250)]),
            count: 100)
        // Some 800 KB of lines: more than a dozen writes, of which none has room.
        for _ in 1...20 {
            try client.send(requests)
            for _ in 1...100 {
                let answer = try client.answer()
                guard answer.status == 200 else { throw Late(what: "an answer", place: "\(answer.status)") }
            }
        }
        program.terminate()
        #expect(try program.exited(within: .seconds(5)) == .code(0))
        #expect(program.diagnostics.contains("its reader does not keep up; "))
        #expect(log.read().hasPrefix("- - - ["))
    }

    @Test func `a log in a missing folder exits with 78 and advice`() throws {
        let run = try Program.run(
            "--listen", "127.0.0.1:0", "--upstream", Self.deadUpstream, "--access-log", "@/nowhere/log")
        let said = "/nowhere/log cannot be opened: No such file or directory; make the folder it is to stand in\n"
        #expect(run.exit == .code(78) && run.errors.hasSuffix(said), "\(run.errors)")
    }

    @Test func `a full disk is reported with the path of the log`() throws {
        let folder = try System.makeTemporaryFolder()
        let (program, place) = try serve(in: folder, upstream: Self.deadUpstream, "--access-log", "/dev/full")
        defer { program.stop() }
        let status = try place.get("/x", "Host: a").status
        #expect(status == 502)
        let line = "access log: /dev/full: No space left on device; 1 line lost\n"
        try eventually("it is told of") { program.diagnostics.contains(line) }
    }

    @Test func `lost lines are reported, even if no more requests come`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, body: "x")] }
        let folder = try System.makeTemporaryFolder()
        #expect(unsafe mkfifo("\(folder)/log", 0o600) == 0)
        let (program, place) = try serve(in: folder, upstream: origin.url, "--access-log", "\(folder)/log")
        defer { program.stop() }
        let first = try place.get("/x", "Host: a")
        #expect(first.text == "x")
        try eventually("the first is told of at once") { program.diagnostics.contains("; 1 line lost") }
        for _ in 1...3 { #expect(try place.get("/x", "Host: a").text == "x") }
        try eventually("the others are told of", within: .seconds(15)) {
            program.diagnostics.contains("; 3 lines lost")
        }
    }

    @Test func `a FIFO as access log may get its reader later`() throws {
        let folder = try System.makeTemporaryFolder()
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, body: "x")] }
        #expect(unsafe mkfifo("\(folder)/log", 0o600) == 0)
        let (program, place) = try serve(in: folder, upstream: origin.url, "--access-log", "\(folder)/log")
        defer { program.stop() }
        try eventually("it says that nobody reads") { program.diagnostics.contains("nobody reads") }
        let early = try place.get("/x?early", "Host: a")
        #expect(early.text == "x")
        try eventually("it says that the line is lost") {
            program.diagnostics.contains("nobody reads the pipe; 1 line lost")
        }
        let reader = unsafe open("\(folder)/log", O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        defer { Socket.close(reader) }
        let late = try place.get("/x?late", "Host: a")
        #expect(late.text == "x")
        var text = ""
        var piece = [UInt8](repeating: 0, count: 65536)
        try eventually("the line") {
            if case .bytes(let count) = Socket.read(reader, into: &piece) {
                text += String(decoding: piece[..<count], as: UTF8.self)
            }
            return text.contains("/x?late") && !text.contains("/x?early")
        }
        program.terminate()
        #expect(try program.exited() == .code(0))
    }
}
