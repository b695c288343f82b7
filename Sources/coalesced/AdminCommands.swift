import Admin
import ArgumentParser
import Configuration
import Console
import Glibc
import Libevent
import Routing

/// The options with which the commands below find the running proxy.
struct AdminOption: ParsableArguments {
    @OptionGroup var file: FileOption

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Address of the admin listener, with https:// if it speaks TLS: its certificate must be one that the file names in tls.certificates, or a good one for the address or the first name in that file. (default: taken from the configuration file)",
            valueName: "addr:port|unix:path"),
        transform: Self.address(of:))
    var admin: AdminAddress?

    private static func address(of text: String) throws -> AdminAddress {
        // `serve --admin` takes `off`; these commands need an address.
        guard text != "off" else {
            throw ValidationError("a running proxy is to be asked; give the address of its admin listener")
        }
        do throws(AddressSyntaxError) {
            return try AdminAddress(parsing: text)
        } catch {
            throw ValidationError(
                "not the address of an admin listener: \(error.rawValue); give one such as `127.0.0.1:8081` or `unix:/path`"
            )
        }
    }

    /// - Parameters:
    ///   - missing: the exit code if there is no admin listener.
    ///   - isAboutFile: whether the command is for the file, whose mistakes then say all.
    func client(orElse missing: ExitCode = ExitStatus.configuration, isAboutFile: Bool = false) throws -> AdminClient {
        let source = ConfigurationSource(path: file.config)
        do throws(ConfigurationSource.Failure) {
            let access = try source.adminAccess()
            if let address = admin ?? AdminAddress(access) {
                return AdminClient(address: address, access, from: source.readPath)
            }
        } catch {
            // Without the file, the listener may still be one without a token.
            if let admin {
                return AdminClient(address: admin, remedy: "admin.token-file is not known: \(error.lines[0])")
            }
            let status = error.report()
            if isAboutFile { throw status }
            System.writeError(
                "so the address of the admin listener is not known: mend the file, or give the address with --admin\n")
            throw status
        }
        System.writeError(
            "the address of the admin listener is unknown: give --admin, or set admin.address in \(source.readPath)\n")
        throw missing
    }

    /// Sends a request. Any status other than 200 ends the command.
    func ask(
        _ method: String, _ path: String, body: String = "", patience: Duration = AdminClient.patience
    ) throws -> String {
        let client = try client()
        let reply = try ask(client, method, path, body: body, patience: patience)
        guard reply.status == 200 else { throw refused(reply, by: client) }
        return reply.body
    }

    /// Reports a reply that the command has no use for, and returns the exit code.
    func refused(_ reply: AdminClient.Reply, by client: AdminClient) -> ExitCode {
        if reply.status == 401 {
            let how = client.token == nil ? "asks for a token" : "asks for another token"
            System.writeError("coalesced at \(client.address) \(how) (401): \(client.remedy)\n")
            return ExitStatus.unavailable
        }
        System.writeError(
            "coalesced at \(client.address) answered \(reply.status): \(reply.body)\(reply.body.hasSuffix("\n") ? "" : "\n")"
        )
        return ExitStatus.unavailable
    }

    /// Sends a request, and returns the reply whatever its status.
    func ask(
        _ client: AdminClient, _ method: String, _ path: String, body: String = "", patience: Duration
    ) throws -> AdminClient.Reply {
        do throws(AdminClient.Failure) {
            return try client.send(method, path, body: body, patience: patience)
        } catch {
            if case .system(let failure) = error, failure.isForbidden {
                System.writeError("not allowed to connect to \(client.address): \(failure)\n")
                throw ExitStatus.noPermission
            }
            if case .timedOut = error {
                System.writeError(
                    "\(client.address) is connected, but gave \(error); what was asked may still be done\n")
            } else {
                System.writeError("no coalesced at \(client.address): \(error)\n")
            }
        }
        throw ExitStatus.unavailable
    }
}

extension AdminClient {
    /// - Parameter path: of the file that `access` was read from.
    init(address: AdminAddress, _ access: AdminAccess, from path: String) {
        let remedy =
            if let mistake = access.tokenMistake {
                "\(mistake)"
            } else if let file = access.tokenPath {
                "that in \(file), which admin.token-file in \(path) names, is not in use; if it has changed, SIGHUP puts it to use (`systemctl reload coalesced`); or give the proxy's own file with --config"
            } else {
                "set admin.token-file in \(path) as in the proxy's own file, or give that file with --config"
            }
        self.init(address: address, certificates: access.certificates, token: access.token, remedy: remedy)
    }
}

/// `coalesced purge`
struct Purge: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Remove stored responses from a running proxy: those of given URLs, everything below them, those with given tags, or everything.",
        discussion:
            "http:// and https:// are equivalent here: responses stored under either scheme are removed, since a server in front may terminate TLS. If one of the URLs is invalid, nothing is purged. Tags are what responses name in Cache-Tag, Surrogate-Key, xkey, X-Magento-Tags or Cache-Groups."
    )

    @OptionGroup var admin: AdminOption
    @Flag(help: "Purge everything.") var all = false
    @Flag(
        help:
            "Purge each URL and everything below it: /img covers /img, /img?x and /img/a, but not /images. The URL must have no query."
    )
    var prefix = false
    @Flag(help: "Purge every response that has one of these tags, whatever its URL.") var tag = false
    @Flag(
        help:
            "Make the responses stale instead of removing them: clients get them while the first who asks has them refreshed."
    )
    var soft = false
    // Unknown options end up in this array, too; `validate` refuses them.
    @Argument(
        parsing: .allUnrecognized,
        help: ArgumentHelp(
            "URLs as clients request them (at most \(AdminSettings.maxPurges)), of which all variants are removed; with --tag, tags.",
            valueName: "url"))
    var urls: [String] = []

    func validate() throws {
        try Self.refuseUnknownOption(among: urls)
        if prefix, tag { throw ValidationError("Give either --prefix or --tag.") }
        if all, prefix || tag { throw ValidationError("Give either --all or \(tag ? "--tag" : "--prefix").") }
        if all, !urls.isEmpty { throw ValidationError("Give either URLs or --all.") }
        if !all, urls.isEmpty { throw ValidationError(whatIsMissing) }
        let what = tag ? "tags" : "URLs"
        guard urls.count <= AdminSettings.maxPurges else {
            throw ValidationError(
                "\(urls.count) \(what) are too many; give at most \(AdminSettings.maxPurges) at a time.")
        }
        for url in urls { try tag ? validate(tag: url) : validate(url) }
        guard content.utf8.count <= AdminSettings.maxContent else {
            throw ValidationError("These \(what) are too long for one request: give fewer at a time.")
        }
    }

    private var whatIsMissing: String {
        if tag { return "--tag needs a tag; --all removes everything." }
        if prefix { return "--prefix needs a URL; --all removes everything." }
        return "\(soft ? "--soft needs" : "Give") URLs, tags with --tag, or --all."
    }

    /// The content of the request.
    private var content: String {
        let word = tag ? "tag " : prefix ? "prefix " : ""
        let lines = all ? ["all"] : urls.map { word + $0 }
        return ((soft ? ["soft"] : []) + lines).joined(separator: "\n")
    }

    private func validate(tag: String) throws {
        guard !tag.isEmpty, !tag.contains(where: \.isNewline), tag.first != " ", tag.last != " " else {
            throw ValidationError("'\(tag)' is not a tag: it must not be empty, or begin or end with a space.")
        }
        guard tag.utf8.count <= AdminSettings.longestTag else {
            throw ValidationError("A tag has at most \(AdminSettings.longestTag) bytes.")
        }
    }

    private func validate(_ url: String) throws {
        if prefix, url.contains("?") {
            throw ValidationError("'\(url)' has a query; with --prefix, give only the part before the '?'.")
        }
        guard ParsedURL(url) == nil else { return }
        let scheme = ["http://", "https://"].first { url.lowercased().hasPrefix($0) }
        guard let scheme, let first = url.dropFirst(scheme.count).first, !"/?#:".contains(first) else {
            throw ValidationError("'\(url)' is not a URL such as http://www.example.com/page.")
        }
        throw ValidationError(
            "'\(url)' is not a URL that can be requested: it must not contain spaces, a user name or a fragment, and non-ASCII characters must be percent-encoded."
        )
    }

    func run() throws {
        let reply = try admin.ask("POST", "/purge", body: content, patience: AdminClient.purgePatience)
        try output(reply)
        guard !all, reply.hasPrefix("purged 0 ") || reply.hasPrefix("made 0 ") else { return }
        if tag {
            let fetched = "one that was being fetched is not counted, and \(soft ? "will be stale" : "not stored")"
            return System.writeError(
                "no stored response had the tag (\(fetched)). Tags are compared byte by byte, with their case\n")
        }
        System.writeError(
            urls.contains { $0.contains("*") }
                ? "'*' is not a wildcard; use --prefix to purge everything below a URL\n"
                : "nothing matched. Give URLs as clients request them: with the host they use, and with the port unless it is the scheme's default\n"
        )
    }
}

/// `coalesced reload`
struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make a running proxy read its configuration file again, and wait for the outcome.",
        discussion: """
            As SIGHUP does, but the command prints each mistake and exits 78 if there is one; the settings in use stay \
            then. It exits 0 when all workers use the new settings, after what it prints about keys that take effect \
            after a restart only.
            """
    )

    /// How long a reload may take: names need not be resolved, but each worker must have had its turn.
    private static let patience: Duration = .seconds(60)

    @OptionGroup var admin: AdminOption

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The proxy's process, whose command line says which file it reads and where its admin listener is. Where none answers, or it asks for a former token, the process gets SIGHUP.",
            valueName: "pid"),
        transform: Self.process(of:))
    var pid: Int32?

    /// Refuses numbers that kill(2) takes for more than one process.
    private static func process(of text: String) throws -> Int32 {
        guard let number = Int32(text), number > 0 else {
            throw ValidationError("not the number of a process; give one such as the service manager's MAINPID")
        }
        return number
    }

    func validate() throws {
        guard pid == nil || admin.admin == nil && admin.file.config == nil else {
            throw ValidationError("Give either --pid, or --config and --admin.")
        }
    }

    func run() throws {
        guard let pid else {
            // Not 78: the file has no mistake, and a signal would reach the proxy.
            return try reload(by: admin.client(orElse: ExitStatus.unavailable, isAboutFile: true))
        }
        let source = try Self.source(of: pid)
        let access: AdminAccess
        do throws(ConfigurationSource.Failure) {
            access = AdminAccess(try source.load())
        } catch {
            throw error.report()
        }
        do {
            if let address = AdminAddress(access) {
                return try reload(by: AdminClient(address: address, access, from: source.readPath), orSignalling: true)
            }
        } catch let status as ExitCode where status == ExitStatus.unavailable {
        }
        System.send(SIGHUP, to: pid)
        System.writeError("process \(pid) got SIGHUP; its log has the outcome\n")
    }

    /// - Parameter signalling: whether the process gets SIGHUP if the admin listener refuses the token.
    private func reload(by client: AdminClient, orSignalling signalling: Bool = false) throws {
        let reply = try admin.ask(client, "POST", "/reload", patience: Self.patience)
        switch reply.status {
        case 200: try output(reply.body)
        case 422:
            System.writeError(reply.body)
            throw ExitStatus.configuration
        case 401 where signalling: throw ExitStatus.unavailable
        default: throw admin.refused(reply, by: client)
        }
    }

    /// Where the running proxy `process` has its settings from.
    private static func source(of process: Int32) throws -> ConfigurationSource {
        let line = try? System.contents(of: "/proc/\(process)/cmdline", mayWait: false)
        // A zero byte follows each word.
        var words = line?.split(separator: "\0", omittingEmptySubsequences: false).dropLast().map(String.init) ?? []
        // Another program may take the signal for its end. This one may have another name, such as coalesced-1.2.
        let name = words.first?.split(separator: "/").last ?? ""
        let isOurs =
            name.wholeMatch(of: #/coalesced(-\d.*)?/#) != nil
            || System.isSameFile("/proc/\(process)/exe", "/proc/self/exe")
        words = Array(words.dropFirst())
        if words.first == "serve" { words.removeFirst() }
        guard isOurs, let serve = try? Serve.parse(words) else {
            System.writeError("process \(process) is no `coalesced serve`; give the number of one that is\n")
            throw ExitStatus.unavailable
        }
        let path = serve.file.config.map { $0.hasPrefix("/") ? $0 : "/proc/\(process)/cwd/\($0)" }
        return ConfigurationSource(path: path, flags: serve.flags.overrides)
    }
}

/// The words of `coalesced drain` and `coalesced undrain`.
struct DrainArguments: ParsableArguments {
    @OptionGroup var admin: AdminOption

    @Argument(help: ArgumentHelp("The name of an upstream.", valueName: "upstream"))
    var upstream: String

    @Argument(
        help: ArgumentHelp(
            "A server of the upstream as in the configuration file, or one address of a server's name as `coalesced status` prints it.",
            valueName: "server"))
    var server: String

    func ask(_ path: String) throws -> String { try admin.ask("POST", path, body: "\(upstream) \(server)") }
}

/// `coalesced drain`
struct Drain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let a server of an upstream have no new requests.",
        discussion: """
            Requests in flight there go on, and idle connections are closed. Prints how many requests are in flight: repeat \
            the command to see when none is left. The server stays drained over reloads, not over restarts and upgrades.
            """
    )

    @OptionGroup var words: DrainArguments

    func run() throws { try output(words.ask("/drain")) }
}

/// `coalesced undrain`
struct Undrain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let a server that was drained have requests again.",
        discussion: "Its share of the requests grows as `slow-start` of the upstream says."
    )

    @OptionGroup var words: DrainArguments

    func run() throws { try output(words.ask("/undrain")) }
}

/// `coalesced status`
struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the state of a running proxy.",
        discussion: "Human-readable if standard output is a terminal, otherwise the JSON of /status."
    )

    @OptionGroup var admin: AdminOption
    @Flag(help: "Print JSON even on a terminal.") var json = false

    func run() throws {
        let status = try admin.ask("GET", "/status")
        guard !json, let terminal = System.terminalSize, let read = JSONValue(status) else {
            return try output(status.hasSuffix("\n") ? status : status + "\n")
        }
        try output(StatusText.lines(read, width: terminal.columns).joined(separator: "\n") + "\n")
    }
}
