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
    func ask(_ method: String, _ path: String, body: String = "") throws -> String {
        let client = try client()
        do throws(AdminClient.Failure) {
            let reply = try client.send(method, path, body: body)
            if reply.status == 200 { return reply.body }
            System.writeError("coalesced at \(client.address) answered \(reply.status): \(reply.body)\n")
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
        abstract: "Remove a stored response, or all of them, from a running proxy.")

    @OptionGroup var admin: AdminOption
    @Flag(help: "Everything that is stored.") var all = false
    @Argument(help: ArgumentHelp("The URL as clients ask for it, with every variant of it.")) var url: String?

    func validate() throws {
        guard all == (url == nil) else { throw ValidationError("Give either a URL or --all.") }
        guard let url else { return }
        let afterScheme = url.dropFirst("http://".count)
        guard url.lowercased().hasPrefix("http://"), let first = afterScheme.first, !"/?#:".contains(first), !url.contains(where: \.isWhitespace) else {
            throw ValidationError("'\(url)' is not a URL such as http://www.example.com/page. What is stored is stored under http.")
        }
    }

    func run() throws {
        let reply = try admin.ask("POST", "/purge", body: url ?? "all")
        try output(reply)
        if let url, url.contains("*"), reply.hasPrefix("purged 0 ") {
            System.writeError("'*' stands for itself here: name each URL, or purge everything with --all\n")
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
