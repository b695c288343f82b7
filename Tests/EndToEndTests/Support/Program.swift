import Glibc
import Synchronization

/// One running instance of the program under test, with a folder of its own for its files.
final class Program: Peer, Sendable {
    private struct State {
        var endpoint = Endpoint.tcp(0)
        var ending: Spawn.Exit?
        var isExpectedToEnd = false
    }

    let folder: String
    let child: pid_t
    private let state = Mutex(State())

    /// The first public listener.
    var endpoint: Endpoint { state.withLock { $0.endpoint } }
    /// The scenario means it to end, or another program has taken its place: then it ends by itself, without a failure,
    /// once its clients have gone.
    func mayHaveEnded(with exit: Spawn.Exit) -> Bool {
        state.withLock { $0.isExpectedToEnd } || (!successors.isEmpty && exit == .code(0))
    }

    /// Starts the program and waits for nothing.
    /// - Parameters:
    ///   - network: its own; `nil`: this machine's.
    ///   - variables: `NAME=value`, beside the environment of the tests.
    ///   - shell: a line for sh(1), in which `exec "$@"` becomes the program.
    ///   - descriptors: the most it may have open; `nil`: as the tests.
    ///   - passed: descriptors that it gets as 3 and so on.
    ///   - path: where it is; `nil`: as below.
    init(
        folder: String, in network: OwnNetwork? = nil, at path: String? = nil, _ arguments: [String],
        variables: [String] = [],
        shell: String? = nil, descriptors: Int? = nil,
        passing passed: [Int32] = []
    ) throws {
        _ = System.descriptorLimit
        self.folder = folder
        var variables = variables
        if Transport.current.isSecureToOrigins {
            try System.write(TestIdentity.authorityText, to: "\(folder)/trusted.pem")
            variables.append("SSL_CERT_FILE=\(folder)/trusted.pem")
        }
        // env(1) becomes the program: it is the same process. So does what makes a network.
        var words = [try path ?? Self.path()] + arguments
        if let shell { words = ["/bin/sh", "-c", shell, "sh"] + words }
        if !variables.isEmpty { words = ["/usr/bin/env"] + variables + words }
        if let descriptors { words = ["/usr/bin/prlimit", "--nofile=\(descriptors):\(descriptors)"] + words }
        if let network { words = try network.command(words, in: folder) }
        child = try Spawn.start(
            words[0], Array(words.dropFirst()), output: "\(folder)/stdout", errors: "\(folder)/stderr", passing: passed)
    }

    deinit { stop() }

    /// As below, in front of one server.
    static func serve(
        upstream: String, _ settings: [Setting] = [], arguments: [String] = [], listeners: Int = 1
    ) throws -> Program {
        try serve(servers: [upstream], settings, arguments: arguments, listeners: listeners)
    }

    /// `coalesced serve` in front of an upstream of `servers`, accepting. The admin listener is on a Unix socket in the
    /// folder, which tells it apart from the public one; say otherwise in `arguments`. `@` in a setting stands for the
    /// folder.
    static func serve(
        servers: [String], _ settings: [Setting] = [], arguments: [String] = [], variables: [String] = [],
        listeners: Int = 1, in network: OwnNetwork? = nil
    ) throws -> Program {
        try serve(
            file: Setting.file(settings, servers: servers), arguments: arguments, variables: variables,
            listeners: listeners, in: network)
    }

    /// The same with a file as it stands.
    /// - Parameter isLinked: whether the program is started by a link in its folder, which a test may change.
    static func serve(
        file: String, arguments: [String] = [], variables: [String] = [], listeners: Int = 1,
        in network: OwnNetwork? = nil, isLinked: Bool = false
    ) throws -> Program {
        let folder = try System.makeTemporaryFolder()
        try System.write(file.replacing("@", with: folder), to: "\(folder)/coalesced.yaml")
        var words = ["serve", "--config", "\(folder)/coalesced.yaml"]
        // A flag says nothing of the PROXY protocol.
        let transport = Transport.current
        let isFileSecured = file.contains("https://127.0.0.1:0")
        let choosesListener =
            !arguments.contains("--listen") && !file.contains("proxy-protocol") && !isFileSecured
        if choosesListener, transport.isSecureToClients {
            words += try ["--listen", "https://127.0.0.1:0"] + TestIdentity.flags(in: folder)
        } else if choosesListener {
            words += ["--listen", "127.0.0.1:0"]
        }
        if !arguments.contains("--admin") { words += ["--admin", "unix:\(folder)/admin.sock"] }
        if isLinked { try System.link("\(folder)/coalesced", to: path()) }
        let program = try Program(
            folder: folder, in: network, at: isLinked ? "\(folder)/coalesced" : nil, words + arguments,
            variables: variables)
        let isSecured = isFileSecured || (words + arguments).contains { $0.hasPrefix("https://127.0.0.1:") }
        try program.waitUntilListening(
            listeners, isSecured: isSecured, isFramed: choosesListener && transport.isFramedToClients)
        return program
    }

    var admin: Address { Address(endpoint: .unix("\(folder)/admin.sock")) }
    var configurationPath: String { "\(folder)/coalesced.yaml" }
    /// What `.accessLog` wrote so far, line by line. The last one may be half written: that does not count yet.
    var accessLog: [JSON] {
        get throws {
            let lines = System.contents(of: "\(folder)/access.log").split(
                separator: "\n", omittingEmptySubsequences: false)
            return try lines.dropLast().map { try JSON(String($0)) }
        }
    }
    var output: String { System.contents(of: "\(folder)/stdout") }
    /// Everything on standard error so far.
    var diagnostics: String { System.contents(of: "\(folder)/stderr") }

    /// The ports of the TCP listeners, in the order in which they were told.
    var ports: [UInt16] {
        diagnostics.split(separator: "\n").compactMap { line in
            guard let told = line.firstRange(of: "listening on ") else { return nil }
            let address = line[told.upperBound...].prefix { !" \"'),".contains($0) }
            return address.split(separator: ":").last.flatMap { UInt16($0) }
        }
    }

    /// Waits for so many TCP listeners.
    /// - Parameters:
    ///   - isSecured: whether clients of the first one speak TLS.
    ///   - isFramed: whether they speak HTTP/2.
    func waitUntilListening(_ count: Int, isSecured: Bool = false, isFramed: Bool = false) throws {
        try eventually("\(count) listeners; \(diagnostics)") {
            if let exit = exit() { throw Ended(exit: exit, diagnostics: diagnostics) }
            return ports.count >= count
        }
        let port = ports[0]
        state.withLock { state in
            state.endpoint =
                switch (isSecured, isFramed) {
                case (false, false): .tcp(port)
                case (true, false): .tls(port)
                case (false, true): .framed(port)
                case (true, true): .framedTLS(port)
                }
        }
    }

    struct Ended: Error, CustomStringConvertible {
        let exit: Spawn.Exit
        let diagnostics: String
        var description: String { "the program ended with \(exit):\n\(diagnostics)" }
    }

    /// A new file for the next reload; listeners stay as they are.
    func rewriteConfiguration(upstream: String, _ settings: Setting...) throws {
        try System.write(Setting.file(settings, upstream: upstream), to: configurationPath)
    }

    // MARK: - Life and death

    func signal(_ number: Int32) {
        if exit() == nil { Spawn.signal(child, number) }
    }

    /// `SIGTERM`, and no surprise that it ends.
    func terminate() {
        expectEnd()
        signal(SIGTERM)
    }

    /// None of its threads runs during `body`; what comes meanwhile it finds all at once.
    func whileStopped(_ body: () throws -> Void) throws {
        signal(SIGSTOP)
        defer { signal(SIGCONT) }
        let tasks = "/proc/\(child)/task"
        try eventually("it is stopped") {
            System.list(tasks).allSatisfy { System.contents(of: "\(tasks)/\($0)/stat").contains(") T ") }
        }
        try body()
    }

    /// How it ended, or nil while it runs.
    func exit() -> Spawn.Exit? {
        state.withLock { state in
            if state.ending == nil { state.ending = Spawn.poll(child) }
            return state.ending
        }
    }

    private func expectEnd() { state.withLock { $0.isExpectedToEnd = true } }

    /// Waits for the end.
    func exited(within limit: Duration = .seconds(10)) throws -> Spawn.Exit {
        expectEnd()
        var ending: Spawn.Exit?
        try eventually("the program ends; \(diagnostics.suffix(2000))", within: limit) {
            ending = exit()
            return ending != nil
        }
        return ending!
    }

    /// The processes that took its place by an upgrade, the latest last.
    var successors: [pid_t] {
        diagnostics.matches(of: #/upgraded: process ([0-9]+) accepts/#).compactMap { pid_t($0.1) }
    }

    /// Upgrades the program that serves now, and waits until the next one does.
    @discardableResult
    func upgrade(within limit: Duration = .seconds(20)) throws -> pid_t {
        let before = successors
        Spawn.signal(before.last ?? child, SIGUSR2)
        try eventually("it is upgraded; \(diagnostics.suffix(2000))", within: limit) {
            successors.count > before.count
                && diagnostics.matches(of: /the former program accepts no more/).count == successors.count
        }
        return successors[before.count]
    }

    /// Kills it if it still runs, and removes its files.
    func stop() {
        for process in successors where System.exists("/proc/\(process)") { Spawn.signal(process, SIGKILL) }
        if exit() == nil {
            Spawn.signal(child, SIGKILL)
            while exit() == nil { System.nap(.milliseconds(1)) }
        }
        System.removeFolder(folder)
    }

    // MARK: - Seen from the kernel

    /// Resident memory in bytes.
    var residentBytes: Int { status("VmRSS:") * 1024 }

    /// The processor time that all its threads have taken. Unlike a wait measured by the clock it does not grow when other
    /// programs keep the machine busy.
    var processorTime: Duration {
        var clock = clockid_t()
        var time = timespec()
        guard unsafe clock_getcpuclockid(child, &clock) == 0, unsafe clock_gettime(clock, &time) == 0 else {
            return .zero
        }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// Descriptors for which the kernel's table has room.
    var descriptorTableSize: Int { status("FDSize:") }

    private func status(_ name: String) -> Int {
        let line = System.contents(of: "/proc/\(child)/status").split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) } ?? 0
    }

    /// What the kernel calls it.
    var processName: String { String(System.contents(of: "/proc/\(child)/comm").prefix { $0 != "\n" }) }

    /// The variables it was loaded with.
    var environment: [String] { System.contents(of: "/proc/\(child)/environ").split(separator: "\0").map(String.init) }

    /// While `body` runs it gets no new descriptor.
    func withoutDescriptors<Result>(_ body: () throws -> Result) throws -> Result {
        try Spawn.limitDescriptors(of: child, to: 0)
        let result = try body()
        try Spawn.limitDescriptors(of: child, to: System.descriptorLimit)
        return result
    }

    /// The file behind one of its descriptors.
    func file(at descriptor: Int) -> String? { System.target(ofLink: "/proc/\(child)/fd/\(descriptor)") }
    var files: [String?] { System.list("/proc/\(child)/fd").map { Int($0).flatMap(file) } }

    var openDescriptors: Int { System.list("/proc/\(child)/fd").count }

    // MARK: - Once and done

    struct Run {
        let exit: Spawn.Exit
        let output: String
        let errors: String
        var everything: String { output + errors }
    }

    /// Runs the program to its end with files of these contents; `@` in an argument stands for their folder.
    static func run(_ arguments: String..., files: [String: String] = [:]) throws -> Run {
        try run(arguments, files: files)
    }

    static func run(_ arguments: [String], files: [String: String] = [:]) throws -> Run {
        let folder = try System.makeTemporaryFolder()
        for (name, text) in files { try System.write(text, to: "\(folder)/\(name)") }
        let program = try Program(folder: folder, arguments.map { $0.replacing("@", with: folder) })
        defer { program.stop() }
        return try Run(exit: program.exited(within: .seconds(20)), output: program.output, errors: program.diagnostics)
    }

    // MARK: - Where it is

    /// `COALESCED_PROGRAM`, else beside the running tests or in a folder above them.
    static func path() throws -> String {
        if let path = System.environment("COALESCED_PROGRAM") { return path }
        var folder = Substring(System.target(ofLink: "/proc/self/exe") ?? CommandLine.arguments[0])
        for place in [folder, Substring(CommandLine.arguments[0])] {
            folder = place
            while let slash = folder.lastIndex(of: "/") {
                folder = folder[..<slash]
                if System.isExecutable("\(folder)/coalesced") { return "\(folder)/coalesced" }
            }
        }
        throw Missing()
    }

    /// Whether it runs under the thread sanitizer: `.ci/races` sets its options then.
    static let isThreadSanitized = System.environment("TSAN_OPTIONS") != nil

    struct Missing: Error, CustomStringConvertible {
        var description: String { "no program to test: build `coalesced`, or name it in COALESCED_PROGRAM" }
    }
}
