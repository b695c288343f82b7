import Glibc
import Testing

@Suite(.scenario) struct CommandLineTests {
    @Test func `an address in use exits with 69`() throws {
        let taken = try Socket.listen()
        defer { Socket.close(taken.descriptor) }
        let run = try Program.run(
            "serve", "--listen", "127.0.0.1:\(taken.port)", "--upstream", "http://127.0.0.1:9", "--admin", "unix:@/a")
        #expect(run.exit == .code(69))
        #expect(run.errors.contains("\(taken.port)"))
    }

    @Test func `an address in use by another coalesced exits with 69`() throws {
        try scenario { _, proxy in
            let run = try Program.run(
                "serve", "--listen", "127.0.0.1:\(proxy.endpoint.port)", "--upstream", "http://127.0.0.1:9", "--admin",
                "unix:@/a")
            #expect(run.exit == .code(69))
            #expect(proxy.exit() == nil)
        }
    }

    @Test func `a Unix socket in a missing folder exits with 69 and advice`() throws {
        let run = try Program.run("--listen", "unix:@/nowhere/s", "--upstream", "http://127.0.0.1:9")
        #expect(run.exit == .code(69) && run.errors.contains("create its directory"), "\(run.errors)")
    }

    @Test(arguments: [("0666", 0o666), ("0600", 0o600)])
    func `a Unix socket for clients has the configured permissions`(_ text: String, _ mode: mode_t) throws {
        let folder = try System.makeTemporaryFolder()
        let file = Setting.file([.other(section: "", key: "socket-mode", value: text)], upstream: "http://127.0.0.1:9")
        try System.write(file, to: "\(folder)/coalesced.yaml")
        let program = try Program(
            folder: folder,
            ["--config", "\(folder)/coalesced.yaml", "--listen", "unix:\(folder)/s", "--admin", "unix:\(folder)/admin"])
        defer { program.stop() }
        try eventually("it listens") { program.diagnostics.contains("listening on unix:\(folder)/s") }
        var status = stat()
        #expect(unsafe stat("\(folder)/s", &status) == 0 && status.st_mode & 0o777 == mode)
    }

    @Test(arguments: [
        ["--listen", "unix:@/precious"], ["--listen", "127.0.0.1:0", "--admin", "unix:@/precious"],
    ])
    func `a file at the path of a Unix socket exits with 69 and is kept`(_ addresses: [String]) throws {
        let folder = try System.makeTemporaryFolder()
        try System.write("precious", to: "\(folder)/precious")
        let words = addresses.map { $0.replacing("@", with: folder) }
        let program = try Program(folder: folder, ["serve", "--upstream", "http://127.0.0.1:9"] + words)
        defer { program.stop() }
        #expect(try program.exited() == .code(69))
        #expect(program.diagnostics.contains("not a socket"))
        #expect(System.contents(of: "\(folder)/precious") == "precious")
    }

    @Test(arguments: [1, 3])
    func `a Unix socket serves clients, and is removed at the end`(_ workers: Int) throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
        let folder = try System.makeTemporaryFolder()
        let program = try Program(
            folder: folder, ["--listen", "unix:\(folder)/s", "--upstream", origin.url, "--workers", "\(workers)"])
        defer { program.stop() }
        try eventually("it listens") {
            if let exit = program.exit() { throw Program.Ended(exit: exit, diagnostics: program.diagnostics) }
            return program.diagnostics.contains("listening on unix:")
        }
        let place = Address(endpoint: .unix("\(folder)/s"))
        for _ in 1...20 { #expect(try place.get("/x", "Host: a").text == "x") }
        let second = try Program.run("--listen", "unix:\(folder)/s", "--upstream", origin.url)
        #expect(second.exit == .code(69))
        program.terminate()
        #expect(try program.exited() == .code(0))
        #expect(!System.exists("\(folder)/s"))
    }

    @Test(arguments: [
        ["--nonsense"], ["--listen", "127.0.0.1:1", "--listen", "127.0.0.1:1"],
        ["--upstream", "http://a", "--upstream", "http://a:80"], ["serve", "--workers", "many"],
        ["serve", "--listen", "nowhere"], ["nonsense"], ["purge"], ["purge", "http://"],
        ["--listen", "127.0.0.1:1", "--admin", "0.0.0.0:1"], ["--shared", "redis://a", "--shared", "redis://A:6379"],
        ["--shared", "redis://a", "--shared", "unix:/r"],
    ])
    func `wrong usage exits with 64 and an explanation`(_ arguments: [String]) throws {
        let folder = try System.makeTemporaryFolder()
        let program = try Program(folder: folder, arguments)
        defer { program.stop() }
        #expect(try program.exited() == .code(64))
        #expect(!program.diagnostics.isEmpty)
    }

    @Test(arguments: [
        (["--workers", "-1"], "'-1' is invalid for '--workers <n>': not understood; give a whole number (0 to 1024)"),
        (["--workers", "99999999999999999999"], "out of range; give a whole number (0 to 1024)"),
        (["--memory", "-5MiB"], "'-5MiB' is invalid for '--memory <size>': not understood; give a size such as"),
        (["--listen", "-1"], "'-1' is invalid for '--listen <addr:port>': not an address to listen on"),
        (["--upstream", "-1"], "'-1' is invalid for '--upstream <url|unix:path>'"),
        (["--shared", "-1"], "'-1' is invalid for '--shared <url|unix:path>': not understood; give a URL such as"),
        (
            ["--shared", "http://a"],
            "'http://a' is invalid for '--shared <url|unix:path>': the scheme must be `redis://`"
        ),
        (["--admin", "-1"], "'-1' is invalid for '--admin <addr:port|unix:path|off>'"),
        (["--log-level", "-1"], "'-1' is invalid for '--log-level <level>': not understood; give one of these words"),
        (["--config", ""], "'' is invalid for '--config <file>': it is empty; name a file"),
        (["check", ""], "'' is invalid for '<file>': it is empty; name a file"),
        (["--access-log", "-v"], "'-v' is invalid for '--access-log <file|stdout|off>'"),
        (["--workers", "--memory", "1GiB"], "'--memory' is invalid for '--workers <n>'"),
        (["status", "--admin", "off"], "'off' is invalid for '--admin <addr:port|unix:path>': a running proxy"),
        (
            ["status", "--admin", "ftp://127.0.0.1:8081"],
            "not the address of an admin listener: it is a URL; give one such as `127.0.0.1:8081` or `unix:/path`"
        ),
        (
            ["--log-level", "warn"],
            "'warn' is invalid for '--log-level <level>': not understood; did you mean `warning`?"
        ),
        (["demo", "--listen", "-1"], "'-1' is invalid for '--listen <addr:port>'"),
        (
            ["demo", "--listen", "unix:/a"],
            "'unix:/a' is invalid for '--listen <addr:port>': the URLs of the demo need"
        ),
        (
            ["stauts"],
            "Unexpected 'stauts': a command comes first (serve, check, demo, purge, drain, undrain, reload, status, top), and"
        ),
        (
            ["stauts", "--json"],
            "Unexpected 'stauts': a command comes first (serve, check, demo, purge, drain, undrain, reload, status, top), and"
        ),
        (["--listen", "127.0.0.1:0", "status"], "Unexpected 'status': a command comes first"),
        (["--listn", "127.0.0.1:1"], "Unknown option '--listn'. Did you mean '--listen'?"),
        (["--listn=127.0.0.1:1"], "Unknown option '--listn'. Did you mean '--listen'?"),
        (
            ["serve", "--workers", "2", "--upsteam", "unix:/a"],
            "Unknown option '--upsteam'. Did you mean '--upstream'?"
        ),
        (["-listen", "127.0.0.1:1"], "Unknown option '-listen'. Did you mean '--listen'?"),
        (["--versoin"], "Unknown option '--versoin'. Did you mean '--version'?"),
        (["--nonsense", "5"], "Unknown option '--nonsense'"),
        (["purge", "--adm", "unix:/a", "http://a"], "Unknown option '--adm'. Did you mean '--admin'?"),
        (["check", "--confg", "a"], "Unknown option '--confg'. Did you mean '--config'?"),
        (["status", "--jsno"], "Unknown option '--jsno'. Did you mean '--json'?"),
        (["--nonsense"], "Unknown option '--nonsense'; see `coalesced serve --help`\n"),
        (["top", "--nonsense"], "Unknown option '--nonsense'; see `coalesced top --help`\n"),
        (["--workers"], "Missing value for '--workers <n>'; see `coalesced serve --help`\n"),
        (["check", "--memory="], "Missing value for '--memory <size>'; see `coalesced check --help`\n"),
        (["check", "a", "b"], "Unexpected argument 'b'; see `coalesced check --help`\n"),
        (["check", "a", "--config", "b"], "Give the file either as an argument or with --config, not both.\n"),
        (["reload", "--config"], "Missing value for '--config <file>'; see `coalesced reload --help`\n"),
        (["reload", "--pid", "0"], "'0' is invalid for '--pid <pid>': not the number of a process; give one such as"),
        (
            ["reload", "--pid", "-1"],
            "'-1' is invalid for '--pid <pid>': not the number of a process; give one such as"
        ),
        (["reload", "--pid=all"], "'all' is invalid for '--pid <pid>': not the number of a process; give one such as"),
        (["reload", "--pid", "1", "--admin", "unix:/a"], "Give either --pid, or --config and --admin.\n"),
        (["reload", "--pid", "1", "--config", "a"], "Give either --pid, or --config and --admin.\n"),
        (["reload", "all"], "Unexpected argument 'all'; see `coalesced reload --help`\n"),
        (
            ["reload", "--admin", "a"],
            "'a' is invalid for '--admin <addr:port|unix:path>': not the address of an admin"
        ),
        (["purge"], "Give URLs, tags with --tag, or --all.\n"),
        (["purge", "--soft"], "--soft needs URLs, tags with --tag, or --all.\n"),
        (["purge", "--soft", "--tag"], "--tag needs a tag; --all removes everything.\n"),
        (["purge", "--all", "--tag"], "Give either --all or --tag.\n"),
        (["purge", "--all", "--tag", "a"], "Give either --all or --tag.\n"),
        (["purge", "--all", "--prefix", "http://a/"], "Give either --all or --prefix.\n"),
        (["purge", "--all", "http://a/"], "Give either URLs or --all.\n"),
        (["drain", "app"], "Missing expected argument '<server>'; see `coalesced drain --help`\n"),
        (["undrain"], "Missing expected argument '<upstream>'; see `coalesced undrain --help`\n"),
        (
            ["--generate-completion-script", "x"],
            "Can't generate completion scripts for 'x'. Please use --generate-completion-script=<shell> with one of: zsh "
        ),
    ])
    func `a wrong word is one line with its flag and the remedy`(_ arguments: [String], _ said: String) throws {
        let run = try Program.run(arguments)
        #expect(run.exit == .code(64), "\(run.everything)")
        #expect(run.output.isEmpty && run.errors.split(separator: "\n").count == 1, "\(run.everything)")
        #expect(run.errors.hasPrefix("Error: ") && run.errors.contains(said), "\(run.errors)")
    }

    /// `--config` takes any word.
    private static let settingFlags = [
        "--listen", "--upstream", "--shared", "--admin", "--workers", "--memory", "--log-level", "--access-log",
    ]

    @Test(arguments: [
        "", "-v", "no \u{7}\n such value", "http://me:secret@here", "me:secret@here", "http://me:se/cr#et@here",
        String(repeating: "é", count: 5_000),
    ])
    func `a wrong value of a flag is one line without control characters and passwords`(_ value: String) throws {
        // Any text but one with control characters may be the name of a file.
        for flag in Self.settingFlags where flag != "--access-log" || value.contains("\n") {
            for words in [["serve", flag, value], ["check", "--print", "\(flag)=\(value)"]] {
                let program = try Program(folder: System.makeTemporaryFolder(), words)
                defer { program.stop() }
                #expect(try program.exited() == .code(64) && program.output.isEmpty)
                let line = program.diagnostics.dropLast()
                #expect(line.hasPrefix("Error: ") && line.contains("'\(flag) <") && line.count < 500, "\(line)")
                #expect(!line.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }, "\(line)")
                #expect(!line.contains("secret") && !line.contains("cr#et"), "\(line)")
                #expect(line.contains(#/[;:] (give|use|write|did you mean|see|a path|a server takes) /#), "\(line)")
            }
        }
    }

    @Test(arguments: [["serve"], ["check"], ["check", "--print"]])
    func `a file that cannot be read is one line with the remedy`(_ command: [String]) throws {
        for (path, line) in [
            ("@/none.yaml", "@/none.yaml: No such file or directory; create it, or name another with --config\n"),
            ("/dev/null", "/dev/null: Neither a regular file nor a pipe; name a configuration file with --config\n"),
            ("@/a/b.yaml", "@/a/b.yaml: Not a directory; name a configuration file with --config\n"),
        ] {
            let run = try Program.run(command + ["--config", path], files: ["a": ""])
            #expect(run.exit == .code(78) && run.output.isEmpty, "\(run.everything)")
            #expect(run.errors.hasSuffix(line.drop { $0 == "@" }) && run.errors.split(separator: "\n").count == 1)
        }
    }

    @Test(arguments: [["status"], ["top"], ["purge", "--all"]])
    func `a missing admin address is reported with the flag that sets it`(_ words: [String]) throws {
        for (name, code) in [("broken.yaml", Int32(78)), ("missing.yaml", 78)] {
            let run = try Program.run(words + ["--config", "@/\(name)"], files: ["broken.yaml": "workers: [\n"])
            #expect(run.exit == .code(code), "\(run.everything)")
            let lines = run.errors.split(separator: "\n")
            #expect(lines.first?.contains(name) == true && lines.count == 2, "\(run.errors)")
            #expect(
                lines.last
                    == "so the address of the admin listener is not known: mend the file, or give the address with --admin",
                "\(run.errors)")
        }
    }

    @Test func `a reload says only what is wrong with the file`() throws {
        for (name, text) in [
            ("broken.yaml", "workers: [\n"), ("wrong.yaml", "admin: {adress: off}\n"), ("missing.yaml", ""),
        ] {
            let files = text.isEmpty ? [:] : [name: text]
            let run = try Program.run(["reload", "--config", "@/\(name)"], files: files)
            #expect(run.exit == .code(78) && run.output.isEmpty, "\(run.everything)")
            #expect(run.errors.contains(name) && run.errors.split(separator: "\n").count == 1, "\(run.errors)")
        }
    }

    @Test func `a file that cannot be sent is reported with its own remedy`() throws {
        let folder = try System.makeTemporaryFolder()
        try System.write(String(repeating: "x", count: (1 << 20) + 1), to: "\(folder)/large")
        for (path, reason) in [
            ("", "Not a regular file; name one"), ("/large", "Larger than 1 MiB; make it smaller, or name another"),
            ("/none", "No such file or directory; create it, or correct the path"),
            ("/large/x", "Not a directory; correct the path"),
        ] {
            let file = "routes:\n  - {respond: {status: 200, file: \(folder)\(path)}}\n"
            let run = try Program.run(["check", "@/f"], files: ["f": file])
            #expect(run.exit == .code(78), "\(run.everything)")
            #expect(run.errors.hasSuffix(" cannot be read: \(reason)\n"), "\(run.errors)")
            #expect(run.errors.contains("/f:2:35: `file: "), "\(run.errors)")
        }
    }

    @Test func `the program prints its version and its commands`() throws {
        let version = try Program.run("--version")
        #expect(version.exit == .code(0) && version.output.contains(#/\d+\.\d+/#))
        let help = try Program.run("--help")
        #expect(help.exit == .code(0))
        for word in ["serve", "check", "demo", "purge", "status"] { #expect(help.output.contains(word)) }
        for command in ["serve", "check"] {
            #expect(try Program.run(command, "--help").output.contains("COALESCED_STORAGE_MEMORY"))
        }
    }

    @Test func `the program serves without a file, on several addresses`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
        let folder = try System.makeTemporaryFolder()
        let program = try Program(
            folder: folder,
            [
                "serve", "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--upstream", origin.url, "--workers",
                "2",
                "--memory", "32MiB", "--admin", "unix:\(folder)/admin.sock", "--access-log", "\(folder)/log",
            ])
        defer { program.stop() }
        try program.waitUntilListening(2)
        #expect(Set(program.ports).count == 2)
        for port in program.ports {
            #expect(try Address(endpoint: .tcp(port)).get("/x", "Host: a").text == "x")
        }
        #expect(origin.count("/x") == 1)
        program.terminate()
        #expect(try program.exited() == .code(0))
        #expect(System.contents(of: "\(folder)/log").split(separator: "\n").count == 2)
    }

    @Test(arguments: [["check", "--config", "@/good.yaml"], ["--help"], ["serve", "--help"], ["--version"]])
    func `output that standard output does not take exits with 74`(_ words: [String]) throws {
        let folder = try System.makeTemporaryFolder()
        try System.write(Setting.file([], upstream: "http://127.0.0.1:9"), to: "\(folder)/good.yaml")
        #expect(unsafe symlink("/dev/full", "\(folder)/stdout") == 0)
        let program = try Program(folder: folder, words.map { $0.replacing("@", with: folder) })
        defer { program.stop() }
        #expect(try program.exited() == .code(74))
    }

    @Test(.originsInTheClear("the address of the admin listener has no scheme"))
    func `a response of another kind of server exits with 69`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/status") { _ in [.answer(200, body: "{}")] }
        let run = try Program.run("status", "--admin", "127.0.0.1:\(origin.port)")
        #expect(run.exit == .code(69) && run.output.isEmpty)
        #expect(origin.count("/status") == 1)
    }

    @Test func `a memory setting larger than the machine's memory is reported at start with its key`() throws {
        for (memory, isTold) in [("1024TiB", true), ("16MiB", false)] {
            let folder = try System.makeTemporaryFolder()
            let program = try Program(
                folder: folder, ["--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9", "--memory", memory])
            defer { program.stop() }
            try program.waitUntilListening(1)
            #expect(program.diagnostics.contains("warning: storage.memory exceeds") == isTold, "\(program.diagnostics)")
        }
    }

    /// Wherever they run out: some calls tell us, libevent ends the process.
    @Test func `a descriptor limit that is too low exits with 69 and an explanation`() throws {
        for limit in 10...30 { try expectUnavailable(withDescriptors: limit) }
    }

    @Test(.disabled(if: Program.isThreadSanitized, "the sanitizer needs more address space than it has here"))
    func `too little room for the workers' threads exits with 69 and their number`() throws {
        let folder = try System.makeTemporaryFolder()
        let program = try Program(
            folder: folder,
            ["--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9", "--workers", "1024"],
            shell: "ulimit -v 600000 && exec \"$@\"")
        defer { program.stop() }
        #expect(try program.exited() == .code(69))
        #expect(
            program.diagnostics.contains("a thread cannot be started: Resource temporarily unavailable; lower workers"),
            "\(program.diagnostics)")
    }

    private func expectUnavailable(withDescriptors limit: Int) throws {
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        let child = try Spawn.start(
            "/usr/bin/prlimit",
            [
                "--nofile=\(limit):\(limit)", Program.path(), "--listen", "127.0.0.1:0", "--upstream",
                "http://127.0.0.1:9", "--workers", "8",
            ],
            output: "/dev/null", errors: "\(folder)/stderr")
        var exit: Spawn.Exit?
        try eventually("it ends") {
            exit = Spawn.poll(child)
            return exit != nil
        }
        #expect(exit == .code(69), "\(limit)")
        #expect(System.contents(of: "\(folder)/stderr").contains("Too many open files"), "\(limit)")
    }

    @Test func `a second instance starts with the same file if its admin listener is turned off`() throws {
        let taken = try Socket.listen()
        defer { Socket.close(taken.descriptor) }
        let folder = try System.makeTemporaryFolder()
        let file = "upstreams: [{name: a, servers: http://127.0.0.1:9}]\nadmin: {address: 127.0.0.1:\(taken.port)}\n"
        try System.write(file, to: "\(folder)/coalesced.yaml")
        let words = ["--config", "\(folder)/coalesced.yaml", "--listen", "127.0.0.1:0"]
        let refused = try Program(folder: folder, words)
        defer { refused.stop() }
        #expect(try refused.exited() == .code(69))
        let said = "this is admin.address: set another, or off, in the file or with --admin"
        #expect(refused.diagnostics.contains(said), "\(refused.diagnostics)")
        let program = try Program(folder: folder, words + ["--admin", "off"])
        defer { program.stop() }
        try program.waitUntilListening(1)
        #expect(!program.diagnostics.contains("(admin)"))
    }

    @Test func `the log begins with the version, the process, the file and its content`() throws {
        try scenario(.workers(2), arguments: ["--memory", "32MiB"]) { _, proxy in
            let version = try Program.run("--version").output.split(separator: "\n")[0]
            let first = proxy.diagnostics.split(separator: "\n").first ?? ""
            let rest = "/coalesced.yaml: 1 upstream, 0 routes, 2 workers, 32MiB"
            #expect(first.contains("info: \(version), pid \(proxy.child), /") && first.hasSuffix(rest), "\(first)")
        }
    }

    @Test func `the number of workers is that of the permitted processors`() throws {
        let folder = try System.makeTemporaryFolder()
        // The first of those that this test may run on.
        let first = "$(grep Cpus_allowed_list /proc/self/status | tr -dc '0-9,-' | cut -d, -f1 | cut -d- -f1)"
        let program = try Program(
            folder: folder,
            ["--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9", "--admin", "unix:\(folder)/a"],
            shell: "exec taskset -c \(first) \"$@\"")
        defer { program.stop() }
        try program.waitUntilListening(1)
        #expect(program.diagnostics.contains(", 1 worker, "), "\(program.diagnostics)")
    }

    @Test func `the command may be left out`() throws {
        let folder = try System.makeTemporaryFolder()
        let program = try Program(
            folder: folder,
            ["--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9", "--admin", "unix:\(folder)/a"])
        defer { program.stop() }
        try program.waitUntilListening(1)
        #expect(program.exit() == nil)
    }
}
