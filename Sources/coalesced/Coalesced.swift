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

            For the options and the environment variables, see `coalesced serve --help`; for every setting, see coalesced.yaml(5) \
            and the commented /usr/share/doc/coalesced/examples/coalesced.yaml.
            """,
        version: "coalesced \(Version.current)",
        subcommands: [
            Serve.self, Check.self, Demo.self, Purge.self, Drain.self, Undrain.self, Reload.self, Status.self, Top.self,
        ],
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
            // An exit code alone comes after a message.
            let message = message(for: error)
            if !message.isEmpty {
                System.writeError(usageMistake(message, help: fullMessage(for: error), arguments) + "\n")
            }
            exit(withError: exitCode(for: error))
        }
    }

    /// The line about a mistake in `arguments`.
    /// - Parameter help: the lines of ArgumentParser besides `message`: the command's usage, and how to
    ///   get its help.
    private static func usageMistake(_ message: String, help: String, _ arguments: [String]) -> String {
        var message = message
        // ArgumentParser gives the values as they are: with passwords, control characters, whatever their length.
        let values =
            arguments
            + arguments.compactMap { word in word.firstIndex(of: "=").map { String(word[$0...].dropFirst()) } }
        for value in values.sorted(by: { $0.count > $1.count }) {
            let shown = Spelling.shown(value)
            if shown != value { message = message.replacing(value, with: shown) }
        }
        message = message.split { $0.isNewline }.map { $0.drop { $0 == " " } }.joined(separator: " ")
        let hasAdvice = message.contains("; ") || message.hasSuffix("?") || message.hasSuffix(".")
        let command = hasAdvice ? nil : help.firstMatch(of: /See '(.+)' for more information/)?.output.1
        return "Error: \(message)" + (command.map { "; see `\($0)`" } ?? "")
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
