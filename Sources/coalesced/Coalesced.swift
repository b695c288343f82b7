import ArgumentParser
import Configuration
import Libevent

/// The command line. `ExitStatus` has the exit codes.
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

            For the options, see `coalesced serve --help`; for every setting, see coalesced.yaml(5) \
            and the commented /usr/share/doc/coalesced/examples/coalesced.yaml.
            """,
        version: "coalesced \(Version.current)",
        subcommands: [Serve.self, Check.self, Demo.self, Purge.self, Reload.self, Status.self, Top.self],
        defaultSubcommand: Serve.self
    )

    static func main() {
        // First of all, before any code opens a descriptor.
        System.occupyStandardDescriptors()
        // Without its arguments, every command would look like `serve` without options.
        guard let words = ProgramArguments.all else {
            System.writeError("cannot read the command line: the arguments were not handed to the program\n")
            exit(withError: ExitStatus.unavailable)
        }
        let arguments = Array(words.dropFirst())
        if isToServe(arguments) { Daemon.holdSignalsBack() }
        Allocator.keepFreedBlocks()
        FatalErrors.setExitStatus(ExitStatus.unavailable.rawValue)
        do {
            var command = try parseAsRoot(arguments)
            try command.run()
        } catch  where exitCode(for: error).isSuccess {
            // The user asked for help, the version or completions.
            do { try Self().output(fullMessage(for: error, columns: nil) + "\n") } catch { exit(withError: error) }
        } catch {
            exit(withError: error)
        }
    }

    /// Whether the command is `serve`, which is the default.
    private static func isToServe(_ arguments: [String]) -> Bool {
        guard let first = arguments.first else { return true }
        return first.hasPrefix("-") || first == "serve"
    }
}

/// The message about an unknown option. ArgumentParser gives this message only if there is no other mistake. But there
/// often is one, such as the option's value in the place of a command or a URL.
extension ParsableCommand {
    /// - Parameter words: the words that are no options of this command, with their values, in the order of the command
    ///   line.
    static func refuseUnknownOption(among words: [String]) throws {
        guard let word = words.first(where: { $0.hasPrefix("-") }) else { return }
        let option = String(word.prefix { $0 != "=" })
        let known = Set(
            Coalesced.helpMessage(for: Self.self, columns: nil).matches(of: /--[a-z-]+/).map { String($0.output) }
        ).sorted()
        let meant = Spelling.nearest(to: option, among: known).map { ". Did you mean '\($0)'?" } ?? ""
        throw ValidationError("Unknown option '\(Spelling.shown(option))'\(meant)")
    }
}

enum Version {
    static let current = "0.1.0"
}
