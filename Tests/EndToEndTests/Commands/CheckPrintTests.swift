import Glibc
import Testing

/// `coalesced check --print`, and the environment variables between the file and the flags.
@Suite(.scenario) struct CheckPrintTests {
    private func run(_ words: [String], _ variables: [String] = [], file: String) throws -> Program.Run {
        let folder = try System.makeTemporaryFolder()
        try System.write(file, to: "\(folder)/f")
        let program = try Program(
            folder: folder, words.map { $0.replacing("@", with: folder) }, variables: variables)
        defer { program.stop() }
        return try Program.Run(
            exit: program.exited(), output: program.output.replacing(folder, with: "@"),
            errors: program.diagnostics.replacing(folder, with: "@"))
    }

    private static let file = """
        workers: 1
        drain-timeout: 5s
        clients: {max-connections: 7, head-timeout: 3s}
        hosts: ["*.example.com", www.example.com]
        upstreams:
          - name: app
            servers: [http://127.0.0.1:9000]
            max-failures: 9
          - name: pool
            servers: [http://10.0.0.1, {url: http://10.0.0.2, weight: 2}]
            balance: hash
            health: {path: /up, body: "a # b"}
            retry: off
            slow-start: 1m
            resume: 7
        routes:
          - path: /a
            upstream: app
            key: {query: {drop: [utm_*]}}
          - {path: /b, redirect: {to: /c}}
          - upstream: pool
        caching: {ttl: {200: 10m}}
        """

    @Test func `each setting is printed with the place that it comes from`() throws {
        let run = try run(
            ["check", "--print", "--config", "@/f", "--memory", "2GiB", "--upstream", "unix:/run/app"],
            [
                "COALESCED_COALESCING_SHARE_ACROSS_COOKIES=on", "COALESCED_CACHING_STRIP_COOKIES=_ga",
                "COALESCED_DRAIN_TIMEOUT=6s", "COALESCED_CLIENTS_HEAD_TIMEOUT=4s", "COALESCED_STORAGE_MEMORY=1GiB",
            ],
            file: Self.file)
        #expect(run.exit == .code(0) && run.errors.isEmpty, "\(run)")
        for (setting, place) in [
            ("log-level: info", "default"), ("workers: 1", "@/f:1:1"),
            ("drain-timeout: 6s", "COALESCED_DRAIN_TIMEOUT"), ("  max-connections: 7", "@/f:3:11"),
            ("  head-timeout: 4s", "COALESCED_CLIENTS_HEAD_TIMEOUT"), ("  memory: 2GiB", "--memory"),
            ("hosts: [\"*.example.com\", www.example.com]", "@/f:4:1"), ("  - name: app", "@/f:6:5"),
            ("    servers: [unix:/run/app]", "--upstream"), ("    max-failures: 9", "@/f:8:5"),
            ("    resolve-ttl: 30s", "default"), ("    health: off", "default"),
            ("    servers: [http://10.0.0.1:80, {url: http://10.0.0.2:80, weight: 2}]", "@/f:10:5"),
            ("    balance: hash", "@/f:11:5"), ("    retry: off", "@/f:13:5"), ("    slow-start: 1m", "@/f:14:5"),
            ("    resume: 7", "@/f:15:5"), ("    resume: 5", "default"),
            (
                "    health: {path: /up, interval: 5s, timeout: 2s, expect: 200-399, body: \"a # b\", host: \"\", failures: 3, successes: 2}",
                "@/f:12:5"
            ), ("  - host: any", "default"), ("    path: /a", "@/f:17:5"),
            ("      query: {drop: [utm_*]}", "@/f:19:11"), ("      sort-query: false", "default"),
            ("    ttl: {200: 10m}", "@/f:22:11"), ("    cache: true", "default"),
            ("    rewrite-location: off", "default"),
            ("    max-ttl: 365d", "default"),
            ("    share-across-cookies: true", "COALESCED_COALESCING_SHARE_ACROSS_COOKIES"),
            ("    strip-cookies: [_ga]", "COALESCED_CACHING_STRIP_COOKIES"),
        ] {
            let lines = run.output.split(separator: "\n").filter { $0.hasPrefix("\(setting) ") }
            #expect(lines.contains { $0.hasSuffix(" # \(place)") }, "\(setting): \(lines)")
        }
        // A route with an answer of its own has only keys that have an effect.
        #expect(
            run.output.matches(of: #/\n    cache: /#).count == 2 && run.output.matches(of: #/\n    key:/#).count == 2)
        // The only key that has this word itself.
        #expect(!run.output.replacing("unknown-name: default", with: "").contains(": default"))
        // It is a file with the same settings.
        let again = try self.run(["check", "--print", "@/f"], file: run.output)
        func values(_ text: String) -> [String] {
            text.split(separator: "\n").map { line in String(line.prefix { $0 != "#" }).trimmed }
        }
        #expect(
            again.exit == .code(0) && again.errors.isEmpty && values(again.output) == values(run.output),
            "\(again.errors)")
    }

    private static let sharing = """
        shared:
          engine: redis://cache:s%2Fecret@10.0.0.9
          prefix: shop
          timeout: 15ms
          lease: 2s
          max-object: 1MiB
          advertise: http://10.0.0.3:8082
          secret-file: @/secret
        """

    @Test func `the settings of the shared tier are printed without a password`() throws {
        let folder = try System.makeTemporaryFolder()
        let secret = "\(folder)/secret"
        try System.write("\(String(repeating: "s", count: 32))\n", to: secret)
        #expect(unsafe chmod(secret, 0o600) == 0)
        let file = Self.sharing.replacing("@/secret", with: secret)
        let run = try run(["check", "--print", "@/f"], ["COALESCED_SHARED_TIMEOUT=16ms"], file: file)
        #expect(run.exit == .code(0) && run.errors.isEmpty, "\(run)")
        for (setting, place) in [
            ("  engine: redis://***@10.0.0.9:6379", "@/f:2:3"), ("  prefix: shop", "@/f:3:3"),
            ("  timeout: 16ms", "COALESCED_SHARED_TIMEOUT"), ("  lease: 2s", "@/f:5:3"),
            ("  max-object: 1MiB", "@/f:6:3"), ("  advertise: http://10.0.0.3:8082", "@/f:7:3"),
            ("  secret-file: \(secret)", "@/f:8:3"),
        ] {
            let lines = run.output.split(separator: "\n").filter { $0.hasPrefix("\(setting) ") }
            #expect(lines.contains { $0.hasSuffix(" # \(place)") }, "\(setting): \(lines)")
        }
        #expect(!run.output.contains("ecret@"))
        let variable = "COALESCED_SHARED_ENGINE=unix://:secret@/run/r"
        let inVariable = try self.run(["check", "--print", "@/f"], [variable], file: file)
        #expect(inVariable.output.contains("  engine: unix://***@/run/r"), "\(inVariable)")
        let flag = try self.run(["check", "--print", "@/f", "--shared", "redis://a"], [variable], file: file)
        #expect(flag.output.contains(#/\n  engine: redis:\/\/a:6379 +# --shared\n/#), "\(flag)")
        // Everybody may read it.
        #expect(unsafe chmod(secret, 0o644) == 0)
        let open = try self.run(["check", "@/f"], file: file)
        #expect(
            open.exit == .code(0) && open.errors.contains("@/f:8:16: warning: `secret-file: \(secret)` can be read"))
        #expect(unsafe unlink(secret) == 0)
        let none = try self.run(["check", "@/f"], file: file)
        #expect(none.exit == .code(78) && none.errors.contains("cannot be read: No such file or directory; create it"))
    }

    @Test func `a wrong variable is one line with its name and the remedy`() throws {
        for (variable, line) in [
            ("COALESCED_WORKERS=many", "COALESCED_WORKERS: `many`: not understood; give "),
            (
                "COALESCED_STORAGE_MEMORY=12",
                "COALESCED_STORAGE_MEMORY: `12`: 12 bytes are out of range, and the unit may be missing; give "
            ),
            ("COALESCED_UPGRADE_TIMEOUT=2h", "COALESCED_UPGRADE_TIMEOUT: `2h`: out of range; give "),
            ("COALESCED_LISTEN=", "COALESCED_LISTEN: ``: empty; give at least 1"),
            ("COALESCED_LISTEN=127.0.0.1:1,127.0.0.1:1", "is there twice; remove one"),
            ("COALESCED_LISTEN=[127.0.0.1:1, 127.0.0.1:2]", "a list has no brackets here; give its entries"),
            ("COALESCED_ADMIN_ADDRESS=http://me:secret@here", "COALESCED_ADMIN_ADDRESS: `http://***@here`: "),
        ] {
            for command in [["check", "@/f"], ["serve", "--config", "@/f"]] {
                let run = try run(command, [variable], file: Self.file)
                #expect(run.exit == .code(78) && run.output.isEmpty)
                #expect(run.errors.contains(line) && run.errors.split(separator: "\n").count == 1, "\(run.errors)")
            }
        }
    }

    @Test func `a variable that no key has gets a warning with the nearest one`() throws {
        let run = try run(
            ["check", "@/f"],
            [
                "COALESCED_STORAG_MEMORY=1GiB", "COALESCED_LOADED_ANEW=1", "OTHER=1",
                "COALESCED_SERVICE_HOST=10.96.0.7", "COALESCED_PORT=tcp://10.96.0.7:80",
            ], file: Self.file)
        #expect(run.exit == .code(0))
        #expect(
            run.errors
                == "COALESCED_STORAG_MEMORY: warning: no key has this variable; did you mean `COALESCED_STORAGE_MEMORY`?\n"
        )
    }

    @Test func `without a file variables and flags are all there is`() throws {
        let run = try run(
            ["check", "--print", "--workers", "3"], ["COALESCED_LISTEN=0.0.0.0:80,unix:/run/s"], file: "")
        #expect(run.exit == .code(0), "\(run)")
        #expect(run.output.contains(#/\nlisten: \[0\.0\.0\.0:80, unix:\/run\/s\] +# COALESCED_LISTEN\n/#))
        #expect(run.output.contains(#/\nworkers: 3 +# --workers\n/#))
        #expect(run.output.contains(#/\n  address: off +# default\n/#))
    }

    @Test func `serve obeys variables, and a reload keeps to them`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, body: "x")] }
        let proxy = try Program.serve(
            servers: [origin.url], [.hosts(["elsewhere.example"])], variables: ["COALESCED_HOSTS=127.0.0.1"])
        defer { proxy.stop() }
        #expect(try proxy.get("/x").text == "x")
        #expect(try proxy.command("reload").exit == .code(0))
        #expect(try proxy.get("/x").text == "x")
    }
}
