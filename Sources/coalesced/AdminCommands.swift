import Admin
import ArgumentParser
import Configuration
import Libevent

/// How the commands below find the running proxy.
struct AdminOption: ParsableArguments {
    @OptionGroup var file: FileOption

    @Option(
        help: ArgumentHelp(
            "The admin listener. (default: as the configuration file says)", valueName: "addr:port|unix:path"),
        transform: ScalarSyntax<SocketAddress>.address.value(of:))
    var admin: SocketAddress?

    func client() throws -> AdminClient {
        if let admin { return AdminClient(address: admin) }
        let source = ConfigurationSource(path: file.config)
        do throws(ConfigurationSource.Failure) {
            if let address = try source.load().admin.address { return AdminClient(address: address) }
        } catch {
            throw error.report()
        }
        System.writeError("no admin listener is known: give --admin, or set admin.address in \(source.readPath)\n")
        throw ExitStatus.configuration
    }

    /// Asks; anything but 200 ends the command.
    /// - Parameter mistake: what to say where the answer is 400: then it is the command's arguments that are wrong.
    func ask(_ method: String, _ path: String, body: String = "", mistake: String? = nil) throws -> String {
        let client = try client()
        var isMistaken = false
        do throws(AdminClient.Failure) {
            let reply = try client.send(method, path, body: body)
            if reply.status == 200 { return reply.body }
            isMistaken = reply.status == 400 && mistake != nil
            System.writeError(
                isMistaken
                    ? "\(mistake ?? "")\n"
                    : "coalesced at \(client.address) answered \(reply.status): \(reply.body)\(reply.body.hasSuffix("\n") ? "" : "\n")"
            )
        } catch {
            if case .system(let failure) = error, failure.isForbidden {
                System.writeError("not allowed to connect to \(client.address): \(failure)\n")
                throw ExitStatus.noPermission
            }
            System.writeError("no coalesced at \(client.address): \(error)\n")
        }
        throw isMistaken ? ExitCode.validationFailure : ExitStatus.unavailable
    }
}

/// `coalesced purge`
struct Purge: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Remove stored responses from a running proxy: of a URL, of all below it, or all.")

    @OptionGroup var admin: AdminOption
    @Flag(help: "Everything that is stored.") var all = false
    @Flag(help: "The URL, without a query, and everything below it: /img covers /img, /img?x and /img/a, not /images.")
    var prefix = false
    @Argument(help: ArgumentHelp("The URL as clients ask for it, with every variant of it.")) var url: String?

    func validate() throws {
        guard all == (url == nil) else { throw ValidationError("Give either a URL or --all.") }
        guard let url else {
            if prefix { throw ValidationError("--prefix needs a URL; --all removes everything.") }
            return
        }
        if prefix, url.contains("?") {
            throw ValidationError("'\(url)' has a query: --prefix takes what stands before it.")
        }
        let afterScheme = url.dropFirst("http://".count)
        guard url.lowercased().hasPrefix("http://"), let first = afterScheme.first, !"/?#:".contains(first),
            !url.contains(where: \.isWhitespace)
        else {
            throw ValidationError(
                "'\(url)' is not a URL such as http://www.example.com/page. What is stored is stored under http.")
        }
    }

    func run() throws {
        let reply = try admin.ask(
            "POST", "/purge", body: url.map { prefix ? "prefix \($0)" : $0 } ?? "all",
            mistake:
                "'\(url ?? "")' is not a URL that a request can be for: it has no user and no fragment, and all but ASCII is percent-encoded."
        )
        try output(reply)
        if let url, url.contains("*"), reply.hasPrefix("purged 0 ") {
            System.writeError("'*' stands for itself here: --prefix removes everything below a URL\n")
        }
    }
}

/// `coalesced status`
struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Show how a running proxy is, in JSON.")

    @OptionGroup var admin: AdminOption

    func run() throws {
        let status = try admin.ask("GET", "/status")
        try output(status.hasSuffix("\n") ? status : status + "\n")
    }
}
