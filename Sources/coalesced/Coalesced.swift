import ArgumentParser
import Libevent

/// The command line. Exit codes: `ExitStatus`.
@main
struct Coalesced: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "coalesced",
        abstract: "A caching HTTP reverse proxy that merges identical requests in flight into one upstream fetch.",
        discussion: """
            Identical requests that are in flight at the same moment become one upstream fetch, whose response streams to \
            everyone who waits for it. What may be reused later is cached by the rules of RFC 9111.

              coalesced --listen 127.0.0.1:8080 --upstream http://127.0.0.1:9000
              coalesced demo

            For the options, see `coalesced serve --help`; for every setting, see coalesced(8) \
            and the commented coalesced.yaml, installed as /etc/coalesced/coalesced.yaml.
            """,
        version: "coalesced \(Version.current)",
        subcommands: [Serve.self, Check.self, Demo.self, Purge.self, Status.self, Top.self],
        defaultSubcommand: Serve.self
    )

    static func main() {
        // Before anything opens a descriptor.
        System.occupyStandardDescriptors()
        if isToServe { Daemon.holdSignalsBack() }
        Allocator.keepFreedBlocks()
        // Swift reads the arguments from /proc; without it every command would look like `serve` without options.
        guard !CommandLine.arguments.isEmpty else {
            System.writeError("cannot read the command line: /proc is not mounted\n")
            exit(withError: ExitStatus.unavailable)
        }
        FatalErrors.setExitStatus(ExitStatus.unavailable.rawValue)
        do {
            var command = try parseAsRoot()
            try command.run()
        } catch  where exitCode(for: error).isSuccess {
            // Help, the version or completions.
            do { try Self().output(fullMessage(for: error, columns: nil) + "\n") } catch { exit(withError: error) }
        } catch {
            exit(withError: error)
        }
    }

    /// Whether `serve` is meant, which is so unless another command is named.
    private static var isToServe: Bool {
        guard let first = CommandLine.arguments.dropFirst().first else { return true }
        return first.hasPrefix("-") || first == "serve"
    }
}

enum Version {
    static let current = "0.1.0"
}
