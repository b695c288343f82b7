import Glibc
import Testing

/// systemd, or what stands for it, is told; it is never waited for.
@Suite(.scenario) struct ServiceManagerTests {
    private func underManager(_ conversation: (ManagerSocket, ScriptedOrigin, () throws -> Program) throws -> Void)
        throws
    {
        let manager = try ManagerSocket()
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, body: "x")] }
        try conversation(manager, origin) {
            try Program.serve(servers: [origin.url], variables: ["NOTIFY_SOCKET=\(manager.path)"])
        }
    }

    @Test func `the service manager is notified of the start, of a reload and of the end`() throws {
        try underManager { manager, _, start in
            let proxy = try start()
            defer { proxy.stop() }
            var told: [String] = []
            try eventually("it is ready") {
                told += manager.read()
                return told == ["READY=1"]
            }
            proxy.signal(SIGHUP)
            try eventually("it has been told of both ends of the reload; \(told)") {
                told += manager.read()
                return told.count == 3
            }
            #expect(told[1].contains(#/^RELOADING=1\nMONOTONIC_USEC=[0-9]+$/#) && told[2] == "READY=1")
            proxy.terminate()
            #expect(try proxy.exited() == .code(0))
            #expect(manager.read() == ["STOPPING=1"])
        }
    }

    /// systemd can wait for that (systemd.service(5), `notify-reload`).
    @Test func `after the last of many signals, the service manager is notified of a later reload`() throws {
        try underManager { manager, _, start in
            let proxy = try start()
            defer { proxy.stop() }
            var told: [String] = []
            try eventually("it is ready") {
                told += manager.read()
                return told == ["READY=1"]
            }
            for _ in 1...20 { proxy.signal(SIGHUP) }
            var last = timespec()
            _ = unsafe clock_gettime(CLOCK_MONOTONIC, &last)
            proxy.signal(SIGHUP)
            try eventually("such a reload is over; \(told)") {
                told += manager.read()
                guard told.count > 2, told.last == "READY=1",
                    let stamp = told[told.count - 2].firstMatch(of: #/^RELOADING=1\nMONOTONIC_USEC=([0-9]+)$/#)
                else { return false }
                return Int(stamp.1) ?? 0 >= last.tv_sec * 1_000_000 + last.tv_nsec / 1_000
            }
            #expect(told.count < 20, "\(told)")
            for (index, message) in told.enumerated() {
                #expect(message == "READY=1" || index % 2 == 1 && message.hasPrefix("RELOADING=1\n"))
            }
        }
    }

    @Test func `a service manager that reads nothing delays neither start nor reload nor end`() throws {
        try underManager { manager, _, start in
            manager.fill()
            let proxy = try start()
            defer { proxy.stop() }
            #expect(try proxy.get("/x").text == "x")
            proxy.signal(SIGHUP)
            try eventually("it is reloaded") { proxy.diagnostics.contains("reloaded") }
            #expect(try proxy.get("/x").text == "x")
            proxy.terminate()
            #expect(try proxy.exited() == .code(0))
            #expect(proxy.diagnostics.contains("the service manager was not told"))
        }
    }

    @Test func `the service manager shows requests a second, hits and what was saved`() throws {
        try underManager { manager, origin, start in
            origin.on("/hit") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            let proxy = try start()
            defer { proxy.stop() }
            for _ in 1...10 { try proxy.get("/hit") }
            var told: [String] = []
            try eventually("it is told; \(told)", within: .seconds(20)) {
                told += manager.readAll().filter { $0.hasPrefix("STATUS=") }
                // Perhaps not all of them fell into one interval.
                return told.contains {
                    $0.wholeMatch(
                        of: /STATUS=[0-9.]+ requests\/s, [1-9][0-9.]+% hits, [1-9][0-9.]+% answered without a fetch/)
                        != nil
                }
            }
        }
    }

    /// Stops one thread of a program, whose others go on, until it is dropped.
    private func stopThread(_ name: String, of process: pid_t) throws -> Python {
        let tasks = "/proc/\(process)/task"
        let thread = try #require(
            System.list(tasks).first { System.contents(of: "\(tasks)/\($0)/comm") == "\(name)\n" })
        let tracer = try Python(
            """
            import ctypes, sys, time
            call, thread = ctypes.CDLL(None, use_errno=True).ptrace, int(sys.argv[1])
            # PTRACE_SEIZE, PTRACE_INTERRUPT. The thread goes on when the tracer ends.
            print(call(0x4206, thread, 0, 0), call(0x4207, thread, 0, 0))
            time.sleep(600)
            """, importing: "ctypes", thread)
        try eventually("it is asked to stop; \(tracer.errors)") { tracer.lines == ["0 0"] }
        try eventually("it is stopped") {
            System.contents(of: "\(tasks)/\(thread)/stat").contains(") t ")
        }
        return tracer
    }

    @Test(arguments: ["worker-1", "a main thread"])
    func `the watchdog is fed only while each loop runs`(_ thread: String) throws {
        let manager = try ManagerSocket()
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, body: "x")] }
        let proxy = try Program.serve(
            servers: [origin.url], [.workers(2)],
            variables: ["NOTIFY_SOCKET=\(manager.path)", "WATCHDOG_USEC=2000000"])
        defer { proxy.stop() }
        func beats(_ count: Int) throws {
            var seen = 0
            try eventually("\(count) beats", within: .seconds(20)) {
                seen += manager.readAll().count { $0 == "WATCHDOG=1" }
                return seen >= count
            }
        }
        try beats(4)
        do {
            let tracer = try stopThread(thread == "worker-1" ? thread : proxy.processName, of: proxy.child)
            defer { withExtendedLifetime(tracer) {} }
            // One may have been under way. systemd's watchdog ends the service after the interval, here 2 s.
            System.nap(.milliseconds(700))
            _ = manager.readAll()
            try stays("it says nothing", for: .milliseconds(2000)) { !manager.readAll().contains("WATCHDOG=1") }
        }
        try beats(2)
    }

    @Test(arguments: ["WATCHDOG_PID=1", "WATCHDOG_USEC=0", "WATCHDOG_USEC=often"])
    func `a watchdog that is not for this program is not fed`(_ variable: String) throws {
        let manager = try ManagerSocket()
        let proxy = try Program.serve(
            servers: ["http://127.0.0.1:9"],
            variables: ["NOTIFY_SOCKET=\(manager.path)", "WATCHDOG_USEC=40000", variable])
        defer { proxy.stop() }
        try stays("it says nothing", for: .milliseconds(500)) { !manager.readAll().contains("WATCHDOG=1") }
    }

    @Test func `after an upgrade the new program feeds the watchdog`() throws {
        let manager = try ManagerSocket()
        let proxy = try Program.serve(
            servers: ["http://127.0.0.1:9"],
            variables: ["NOTIFY_SOCKET=\(manager.path)", "WATCHDOG_USEC=400000"])
        defer { proxy.stop() }
        try proxy.upgrade()
        #expect(try proxy.exited() == .code(0))
        _ = manager.readAll()
        try eventually("it is fed") { manager.readAll().contains("WATCHDOG=1") }
    }

    /// As systemd does: the test stands in for it.
    @Test func `one stuck worker of four, in a program that took another one's place, is noticed by the watchdog`()
        throws
    {
        let manager = try ManagerSocket()
        let interval = Duration.seconds(1)
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, body: "x")] }
        let proxy = try Program.serve(
            servers: [origin.url], [.workers(4)],
            variables: ["NOTIFY_SOCKET=\(manager.path)", "WATCHDOG_USEC=1000000"])
        defer { proxy.stop() }
        let main = try proxy.upgrade()
        #expect(try proxy.exited() == .code(0))
        var told = manager.readAll()
        #expect(told.contains("MAINPID=\(main)"))
        let tracer = try stopThread("worker-2", of: main)
        defer { withExtendedLifetime(tracer) {} }
        // The others serve on, and feed nothing.
        var last = Instant.now
        try eventually("nothing is heard for an interval", within: .seconds(20)) {
            told = manager.readAll()
            if told.contains("WATCHDOG=1") { last = .now }
            return .now - last > interval
        }
        #expect(System.list("/proc/\(main)/task").count >= 5)
    }

    @Test func `systemd does not start again with a faulty file, and each mistake is logged`() throws {
        let unit = System.contents(of: "\(Repository.folder)/systemd/coalesced.service").split(separator: "\n")
        func said(_ key: String) -> [Substring] {
            unit.filter { $0.hasPrefix("\(key)=") }.map { $0.dropFirst(key.count + 1) }
        }
        let folder = try System.makeTemporaryFolder()
        try System.write("workers: none\nlisten: nowhere\n", to: "\(folder)/coalesced.yaml")
        let words = try #require(said("ExecStart").first).split(separator: " ").dropFirst().map {
            String($0).replacing("/etc/coalesced", with: folder)
        }
        let program = try Program(folder: folder, words)
        defer { program.stop() }
        let exit = try program.exited()
        let told = program.diagnostics
        #expect(told.contains("coalesced.yaml:1:") && told.contains("coalesced.yaml:2:"), "\(told)")
        // What it does not ask of anything but ExecStart.
        #expect(said("ExecStartPre").isEmpty)
        let final = said("RestartPreventExitStatus").flatMap { $0.split(separator: " ") }
        #expect(final.compactMap { Int32($0) }.contains { exit == .code($0) }, "\(exit)")
    }

    /// What `systemd-analyze` of this machine says about the units.
    private static func analyze(_ words: [String]) throws -> Program.Run {
        let folder = try System.makeTemporaryFolder()
        // `verify` looks for the program where the unit says, and in the manual for its pages.
        for unit in ["coalesced.service", "coalesced.socket"] {
            let text = System.contents(of: "\(Repository.folder)/systemd/\(unit)")
            try System.write(
                text.replacing("/usr/bin/coalesced", with: try Program.path()), to: "\(folder)/\(unit)")
        }
        let program = try Program(
            folder: folder, words.map { $0.replacing("@", with: folder) },
            shell: "shift; exec systemd-analyze \"$@\"")
        defer { program.stop() }
        return try Program.Run(exit: program.exited(), output: program.output, errors: program.diagnostics)
    }

    private static let hasSystemd = System.isExecutable("/usr/bin/systemd-analyze")

    @Test(.enabled(if: hasSystemd, "systemd-analyze is not installed"))
    func `systemd finds nothing wrong with the units`() throws {
        let told = try Self.analyze(["verify", "--man=no", "@/coalesced.service", "@/coalesced.socket"])
        #expect(told.exit == .code(0) && told.everything.isEmpty, "\(told.everything)")
    }

    /// Out of 10, for a service with all privileges.
    @Test(.enabled(if: hasSystemd, "systemd-analyze is not installed"))
    func `systemd measures an exposure of at most 1_5`() throws {
        let told = try Self.analyze(
            ["security", "--offline=true", "--no-pager", "--threshold=15", "@/coalesced.service"])
        #expect(told.exit == .code(0), "\(told.everything)")
        #expect(told.output.contains("Overall exposure level for coalesced.service: 1."), "\(told.everything)")
    }

    @Test func `the package is of the version that the program says`() throws {
        let version = try Program.run("--version").output.split(separator: " ").last.map { $0.prefix { $0 != "\n" } }
        let changes = System.contents(of: "\(Repository.folder)/debian/changelog")
        #expect(changes.hasPrefix("coalesced (\(version ?? "?")) "))
    }

    /// Where somebody may mount something of his own: as root, or where users may be root of a namespace.
    private static let hidingProc = [
        "--user", "--map-root-user", "--mount", "sh", "-c", #"mount -t tmpfs none /proc && exec "$0" "$@""#,
    ]

    private static func run(_ words: String..., errors: String = "/dev/null") throws -> Spawn.Exit {
        let child = try Spawn.start("/usr/bin/unshare", hidingProc + words, output: "/dev/null", errors: errors)
        var exit: Spawn.Exit?
        try eventually("\(words) ends") {
            exit = Spawn.poll(child)
            return exit != nil
        }
        return exit!
    }

    private static let canHideProc = (try? run("true")) == .code(0)

    @Test(.enabled(if: ServiceManagerTests.canHideProc, "nothing may be mounted here"))
    func `the program reads its arguments without proc`() throws {
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        #expect(try Self.run(Program.path(), "--version", errors: "\(folder)/errors") == .code(0))
        #expect(try Self.run(Program.path(), "serve", "--nonsense", errors: "\(folder)/errors") == .code(64))
        #expect(System.contents(of: "\(folder)/errors").contains("--nonsense"))
    }
}
