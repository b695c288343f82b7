import ArgumentParser
import Bytes
import Configuration
import Libevent
import Routing
import TLS
import Telemetry
import Upstream

/// `coalesced serve`: the daemon.
struct Serve: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the proxy (the default).",
        discussion: """
            Flags override environment variables, such as COALESCED_STORAGE_MEMORY for `storage: {memory: …}`, and \
            these override the file. SIGTERM, SIGINT and SIGQUIT let requests finish and exit 0; another one ends \
            drain-delay if that still runs, otherwise the program at once. SIGHUP reads the file and opens the access log \
            again, SIGUSR1 only opens the log. SIGUSR2 starts the program that is by now at this one's path, which takes \
            over all listeners. Without a file there is no admin listener unless --admin asks for one.
            """
    )

    @OptionGroup var file: FileOption

    @OptionGroup var flags: SettingFlags

    /// The words that are not options, including unknown options. As a rule a misspelled command, since `serve` is the
    /// default command.
    @Argument(parsing: .allUnrecognized, help: .hidden) var unexpected: [String] = []

    func validate() throws {
        if let word = unexpected.first {
            if word.hasPrefix("-") { try Self.refuseUnknownOption(among: unexpected) }
            let commands = Coalesced.configuration.subcommands.map { $0._commandName }.joined(separator: ", ")
            throw ValidationError(
                "Unexpected '\(word)': a command comes first (\(commands)), and options begin with --.")
        }
    }

    func run() throws {
        // The signals were held back since `main`. From now on they end the program, since reading the file may wait.
        for signal in Daemon.endingSignals { System.exit(on: signal) }
        let source = ConfigurationSource(path: file.config, flags: flags.overrides)
        let reading: ConfigurationSource.Reading
        do throws(ConfigurationSource.Failure) {
            reading = try source.read(mayWait: true)
        } catch {
            throw error.report()
        }
        try Daemon.run(reading.settings, from: reading.file?.path, reloadingFrom: source)
    }
}

/// The option for the configuration file, for the commands that read it.
struct FileOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The configuration file. (default: \(ConfigurationSource.defaultPath), if it exists)", valueName: "file"),
        completion: .file(), transform: Self.path(of:))
    var config: String?

    /// Refuses an empty path, such as that of a variable that was never set.
    static func path(of text: String) throws -> String {
        guard !text.isEmpty else { throw ValidationError("it is empty; name a file") }
        return text
    }
}

/// The flags that override the file, for the commands that use or show the settings.
struct SettingFlags: ParsableArguments {
    // Each option takes the next word, even one that begins with `-`: in `--workers -1` the value is wrong, not
    // missing.

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Address to listen on, with https:// before it for TLS; may be repeated. Port 0 picks a free port.",
            valueName: "addr:port"),
        transform: ScalarSyntax<ListenerSettings>.listener.value(of:))
    var listen: [ListenerSettings] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The certificate for TLS with clients, with its chain, as a PEM file; replaces the certificates in the file. Needs --tls-key.",
            valueName: "file"),
        completion: .file(), transform: Self.file(at:))
    var tlsCertificate: NamedFile?

    @Option(
        parsing: .unconditional, help: ArgumentHelp("The key of --tls-certificate, as a PEM file.", valueName: "file"),
        completion: .file(), transform: Self.file(at:))
    var tlsKey: NamedFile?

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A server of the first upstream; replaces the servers in the file; may be repeated. Weights and backup servers need a file.",
            valueName: "url|unix:path"),
        transform: ScalarSyntax<UpstreamServer>.server.value(of:))
    var upstream: [UpstreamServer] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Redis or Valkey, in which this machine shares responses with others; may be repeated for nodes of a cluster. A password belongs in the file.",
            valueName: "url|unix:path"),
        transform: ScalarSyntax<RedisLocation>.engine.value(of:))
    var shared: [RedisLocation] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Address of the admin listener, with https:// for TLS, or off.", valueName: "addr:port|unix:path|off"),
        completion: .list(["off"]),
        transform: ScalarSyntax<AdminTarget>.adminTarget.value(of:))
    var admin: AdminTarget?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Number of worker threads; 0 means one per core.", valueName: "n"),
        transform: ScalarSyntax<Int>.workers.value(of:))
    var workers: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Memory for all bodies, stored and in flight, for example 256MiB.", valueName: "size"),
        transform: ScalarSyntax<Int>.memory.value(of:))
    var memory: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Lowest level that is logged: debug, info, notice, warning, error, critical.", valueName: "level"),
        completion: .list(LogLevel.allCases.map(\.rawValue)),
        transform: ScalarSyntax<LogLevel>.logLevel.value(of:))
    var logLevel: LogLevel?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Where the access log is written.", valueName: "file|stdout|off"),
        completion: .file(),
        transform: ScalarSyntax<AccessLogTarget>.accessLogTarget.value(of:))
    var accessLog: AccessLogTarget?

    func validate() throws {
        for (index, listener) in listen.enumerated() {
            guard let other = listen[..<index].first(where: { $0.address == listener.address }) else { continue }
            if other.isSecure != listener.isSecure {
                throw ValidationError(
                    "--listen \(listener.address) is given with https:// and without; give another port for one of them."
                )
            }
            if listener.address.port != 0 {
                throw ValidationError("--listen \(listener.address) is given twice; remove one of them.")
            }
        }
        if (tlsCertificate == nil) != (tlsKey == nil) {
            let (given, missing) =
                tlsKey == nil ? ("--tls-certificate", "--tls-key") : ("--tls-key", "--tls-certificate")
            throw ValidationError("\(given) needs \(missing) beside it; add it.")
        }
        for (index, server) in upstream.enumerated() where upstream[..<index].contains(server) {
            throw ValidationError("--upstream \(server) is given twice; remove one of them. Weights need a file.")
        }
        for (index, engine) in shared.enumerated() where shared[..<index].contains(engine) {
            throw ValidationError("--shared \(engine) is given twice; remove one of them.")
        }
        if let mistake = RedisLocation.mistake(inCluster: shared) { throw ValidationError("--shared: \(mistake).") }
    }

    /// A file, which is read with the configuration.
    private static func file(at path: String) throws -> NamedFile {
        guard !path.isEmpty else { throw ValidationError("it is empty; name a file") }
        guard !path.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
            throw ValidationError("a path must be without control characters")
        }
        if path.hasPrefix("/") { return NamedFile(path: path) }
        return NamedFile(path: System.currentFolder.map { "\($0)/\(path)" } ?? path)
    }

    var overrides: Overrides {
        var overrides = Overrides()
        overrides.listeners = listen
        if let tlsCertificate, let tlsKey {
            overrides.identity = TLSIdentity(certificate: tlsCertificate, key: tlsKey)
        }
        overrides.servers = upstream
        overrides.engines = shared
        overrides.admin = admin
        overrides.workers = workers
        overrides.memory = memory
        overrides.logLevel = logLevel
        overrides.accessLog = accessLog
        return overrides
    }
}
