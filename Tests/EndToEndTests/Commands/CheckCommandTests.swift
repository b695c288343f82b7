import Glibc
import Testing

@Suite(.scenario) struct CheckCommandTests {
    @Test func `five mistakes are five messages with line and column, and exit 78`() throws {
        let file = Setting.fileWithFiveMistakes
        let run = try Program.run("check", "--config", "@/bad.yaml", files: ["bad.yaml": file.text])
        #expect(run.exit == .code(78))
        let places = run.everything.matches(of: #/bad\.yaml:(\d+):(\d+): \S/#)
        #expect(places.compactMap { Int($0.output.1) } == file.lines)
        #expect(places.allSatisfy { (Int($0.output.2) ?? 0) > 0 })
    }

    @Test func `a file with a byte order mark is accepted, one in UTF-16 is refused with advice`() throws {
        let file = Setting.file([.workers(2)], upstream: "http://127.0.0.1:9000")
        let marked = try Program.run("check", "@/marked.yaml", files: ["marked.yaml": "\u{FEFF}" + file])
        #expect(marked.exit == .code(0), "\(marked.everything)")
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        let units = file.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        try System.write([0xFF, 0xFE] + units, to: "\(folder)/wide.yaml")
        let wide = try Program.run("check", "\(folder)/wide.yaml")
        #expect(
            wide.exit == .code(78)
                && wide.errors.hasSuffix(
                    "wide.yaml:1:1: this is UTF-16 or UTF-32, not text in UTF-8; save the file as UTF-8\n"),
            "\(wide.everything)")
    }

    @Test func `a valid file is accepted`() throws {
        let file = Setting.file([.workers(2), .headTimeout(.seconds(5))], upstream: "http://127.0.0.1:9000")
        let run = try Program.run("check", "--config", "@/good.yaml", files: ["good.yaml": file])
        #expect(run.exit == .code(0), "\(run.everything)")
    }

    @Test func `the file may be named with --config or without, but not both ways`() throws {
        let file = ["good.yaml": Setting.file([.workers(2)], upstream: "http://127.0.0.1:9000")]
        let bare = try Program.run("check", "@/good.yaml", files: file)
        #expect(bare.exit == .code(0) && bare.output.contains("good.yaml: ok"), "\(bare.everything)")
        let twice = try Program.run("check", "@/good.yaml", "--config", "@/good.yaml", files: file)
        #expect(twice.exit == .code(64), "\(twice.everything)")
    }

    @Test func `text that is not YAML exits with 78 and its place`() throws {
        let run = try Program.run("check", "--config", "@/bad.yaml", files: ["bad.yaml": "workers: [1, 2\nlisten: {\n"])
        #expect(run.exit == .code(78))
        #expect(run.everything.contains(#/bad\.yaml:\d+:\d+: /#))
    }

    /// A path to a pipe that holds `text` and has no writer any more, as a shell's `<(…)` is in the end.
    private func withPipe<Result>(of text: String, _ body: (_ path: String) throws -> Result) throws -> Result {
        let pipe = Socket.makePipe()
        defer { Socket.close(pipe.reading) }
        try System.write(text, to: "/proc/\(getpid())/fd/\(pipe.writing)")
        Socket.close(pipe.writing)
        return try body("/proc/\(getpid())/fd/\(pipe.reading)")
    }

    @Test func `an empty pipe is refused`() throws {
        let empty = try withPipe(of: "") { try Program.run("check", "--config", $0) }
        #expect(empty.exit == .code(78) && empty.errors.contains(":1:1: the file is empty"), "\(empty.everything)")
    }

    @Test func `an address for clients that is the admin address is reported by check and by serve`()
        throws
    {
        let file = ["c.yaml": "listen: [127.0.0.1:8081]\n"]
        let check = try Program.run("check", "@/c.yaml", files: file)
        #expect(
            check.exit == .code(78)
                && check.errors.contains("c.yaml:1:9: `listen` and `admin.address` are both 127.0.0.1:8081"),
            "\(check.everything)")
        let serve = try Program.run("--config", "@/c.yaml", "--admin", "127.0.0.1:8081", files: file)
        #expect(
            serve.exit == .code(78)
                && serve.errors.contains("c.yaml:1:9: `listen` and `admin.address` are both 127.0.0.1:8081"),
            "\(serve.everything)")
        // The file has no part in it.
        let flags = try Program.run("--config", "@/c.yaml", "--listen", "unix:@/s", "--admin", "unix:@/s", files: file)
        #expect(
            flags.exit == .code(64) && flags.errors.hasPrefix("`listen` and `admin.address` are both unix:"),
            "\(flags.everything)")
    }

    @Test func `a pipe is read like a file`() throws {
        let file = Setting.file([.workers(2)], upstream: "http://127.0.0.1:9000")
        let good = try withPipe(of: file) { try Program.run("check", "--config", $0) }
        #expect(good.exit == .code(0), "\(good.everything)")
        let bad = try withPipe(of: Setting.fileWithFiveMistakes.text) { try Program.run("check", "--config", $0) }
        #expect(bad.exit == .code(78) && bad.everything.matches(of: #/:\d+:\d+: \S/#).count == 5, "\(bad.everything)")
        let other = try Program.run("check", "--config", "/dev/zero")
        #expect(other.exit == .code(78) && other.errors.contains("nor a pipe"), "\(other.everything)")
    }

    @Test func `a proxy starts from a pipe, and a reload does not wait for the pipe`() throws {
        let file = Setting.file([.workers(1)], upstream: "http://127.0.0.1:9000")
        try withPipe(of: file) { path in
            let folder = try System.makeTemporaryFolder()
            let program = try Program(
                folder: folder,
                ["serve", "--config", path, "--listen", "127.0.0.1:0", "--admin", "unix:\(folder)/admin.sock"])
            defer { program.stop() }
            try program.waitUntilListening(1)
            program.signal(SIGHUP)
            try eventually("it says so") { program.diagnostics.contains("a pipe can only be read at startup") }
            program.terminate()
            #expect(try program.exited() == .code(0))
        }
    }

    @Test func `serve refuses each file that check refuses`() throws {
        let file = Setting.fileWithFiveMistakes
        let run = try Program.run(
            "serve", "--listen", "127.0.0.1:0", "--config", "@/bad.yaml", files: ["bad.yaml": file.text])
        #expect(run.exit == .code(78))
        #expect(!run.errors.contains("listening on"))
    }

    @Test func `a named file that does not exist exits with 78`() throws {
        #expect(try Program.run("check", "--config", "@/none.yaml").exit == .code(78))
    }

    private static let unused = """
        hosts: [a.example]
        upstreams:
          - {name: used, servers: "http://127.0.0.1:9"}
          - {name: unused, servers: "http://127.0.0.1:10"}
        routes:
          - {host: b.example, upstream: used}

        """

    @Test func `a doubtful setting gives a warning with its place, and exit 0`() throws {
        let run = try Program.run("check", "@/c.yaml", files: ["c.yaml": Self.unused])
        #expect(run.exit == .code(0) && run.output.hasSuffix("c.yaml: ok\n"), "\(run.everything)")
        let lines = run.errors.split(separator: "\n")
        #expect(lines.count == 2, "\(run.errors)")
        #expect(run.errors.contains(#/c\.yaml:4:12: warning: no route uses upstream `unused`/#), "\(run.errors)")
        #expect(run.errors.contains(#/c\.yaml:6:12: warning: requests for `b\.example` get 421/#), "\(run.errors)")
    }

    @Test(.clientsInTheClear("a host without a certificate would be another warning"))
    func `the log has the warnings at start and at each reload, but no more than a page of them`() throws {
        let program = try Program.serve(file: Self.unused)
        defer { program.stop() }
        func told(_ text: String) -> Int {
            program.diagnostics.split(separator: "\n").count { $0.contains(" warning: ") && $0.contains(text) }
        }
        #expect(told("coalesced.yaml:4:12: no route uses upstream `unused`") == 1, "\(program.diagnostics)")
        #expect(told("coalesced.yaml:6:12: requests for `b.example` get 421") == 1, "\(program.diagnostics)")
        program.signal(SIGHUP)
        try eventually("they are told again") { told("coalesced.yaml:4:12: no route uses upstream `unused`") == 2 }
        let many = (0..<100).map { "  - {host: \($0).example, upstream: used}\n" }.joined()
        try System.write(Self.unused + many, to: program.configurationPath)
        program.signal(SIGHUP)
        try eventually("the rest are counted") { told("82 more warnings about the configuration") == 1 }
        #expect(told("get 421") == 2 + 19, "\(program.diagnostics)")
    }
}
