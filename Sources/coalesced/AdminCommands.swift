import Admin
import ArgumentParser
import Configuration
import Console
import Libevent
import Proxy

/// How the commands below find the running proxy.
struct AdminOption: ParsableArguments {
    @OptionGroup var file: FileOption

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The admin listener. (default: as the configuration file says)", valueName: "addr:port|unix:path"),
        transform: Self.address(of:))
    var admin: SocketAddress?

    private static func address(of text: String) throws -> SocketAddress {
        // What `serve` takes.
        guard text != "off" else {
            throw ValidationError("a running proxy is to be asked; give the address of its admin listener")
        }
        do throws(AddressSyntaxError) {
            return try SocketAddress(parsing: text)
        } catch {
            throw ValidationError(
                "not the address of an admin listener: \(error.rawValue); give one such as `127.0.0.1:8081` or `unix:/path`"
            )
        }
    }

    func client() throws -> AdminClient {
        if let admin { return AdminClient(address: admin) }
        let source = ConfigurationSource(path: file.config)
        do throws(ConfigurationSource.Failure) {
            if let address = try source.load().admin.address { return AdminClient(address: address) }
        } catch {
            let status = error.report()
            System.writeError(
                "so the address of the admin listener is not known: mend the file, or give the address with --admin\n")
            throw status
        }
        System.writeError("no admin listener is known: give --admin, or set admin.address in \(source.readPath)\n")
        throw ExitStatus.configuration
    }

    /// Asks; anything but 200 ends the command.
    func ask(_ method: String, _ path: String, body: String = "") throws -> String {
        let client = try client()
        do throws(AdminClient.Failure) {
            let reply = try client.send(method, path, body: body)
            if reply.status == 200 { return reply.body }
            System.writeError(
                "coalesced at \(client.address) answered \(reply.status): \(reply.body)\(reply.body.hasSuffix("\n") ? "" : "\n")"
            )
        } catch {
            if case .system(let failure) = error, failure.isForbidden {
                System.writeError("not allowed to connect to \(client.address): \(failure)\n")
                throw ExitStatus.noPermission
            }
            System.writeError("no coalesced at \(client.address): \(error)\n")
        }
        throw ExitStatus.unavailable
    }
}

/// `coalesced purge`
struct Purge: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Remove stored responses from a running proxy: of URLs, of all below them, or all.",
        discussion:
            "http and https mean the same here: what is stored for either goes, as a server in front may terminate TLS. Where one URL is wrong, nothing is purged."
    )

    @OptionGroup var admin: AdminOption
    @Flag(help: "Everything that is stored.") var all = false
    @Flag(
        help: "Each URL, without a query, and everything below it: /img covers /img, /img?x and /img/a, not /images.")
    var prefix = false
    @Argument(
        help: ArgumentHelp(
            "URLs as clients ask for them, with every variant; \(AdminSettings.maxPurges) at most.", valueName: "url"))
    var urls: [String] = []

    func validate() throws {
        guard all == urls.isEmpty else { throw ValidationError("Give either URLs or --all.") }
        if prefix, urls.isEmpty { throw ValidationError("--prefix needs a URL; --all removes everything.") }
        guard urls.count <= AdminSettings.maxPurges else {
            throw ValidationError("\(urls.count) URLs are too many: give at most \(AdminSettings.maxPurges) at a time.")
        }
        for url in urls { try validate(url) }
        guard content.utf8.count <= AdminSettings.maxContent else {
            throw ValidationError("These URLs are too long for one request: give fewer at a time.")
        }
    }

    /// What is sent.
    private var content: String { all ? "all" : urls.map { prefix ? "prefix \($0)" : $0 }.joined(separator: "\n") }

    private func validate(_ url: String) throws {
        if prefix, url.contains("?") {
            throw ValidationError("'\(url)' has a query: --prefix takes what stands before it.")
        }
        guard ParsedURL(url) == nil else { return }
        let scheme = ["http://", "https://"].first { url.lowercased().hasPrefix($0) }
        guard let scheme, let first = url.dropFirst(scheme.count).first, !"/?#:".contains(first) else {
            throw ValidationError("'\(url)' is not a URL such as http://www.example.com/page.")
        }
        throw ValidationError(
            "'\(url)' is not a URL that a request can be for: it has no space, no user and no fragment, and all but ASCII is percent-encoded."
        )
    }

    func run() throws {
        let reply = try admin.ask("POST", "/purge", body: content)
        try output(reply)
        guard !all, reply.hasPrefix("purged 0 ") else { return }
        System.writeError(
            urls.contains { $0.contains("*") }
                ? "'*' stands for itself here: --prefix removes everything below a URL\n"
                : "a URL is as clients ask for it: with their host, and with the port if that is not the scheme's own\n"
        )
    }
}

/// `coalesced status`
struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the state of a running proxy.",
        discussion: "For people if standard output is a terminal, else in JSON, as /status has it."
    )

    @OptionGroup var admin: AdminOption
    @Flag(help: "JSON on a terminal, too.") var json = false

    func run() throws {
        let status = try admin.ask("GET", "/status")
        guard !json, let terminal = System.terminalSize, let read = JSONValue(status) else {
            return try output(status.hasSuffix("\n") ? status : status + "\n")
        }
        try output(StatusText.lines(read, width: terminal.columns).joined(separator: "\n") + "\n")
    }
}
