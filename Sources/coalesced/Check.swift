import ArgumentParser
import Configuration

/// `coalesced check`: reports the mistakes and warnings that `serve` would report about the file.
struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check a configuration file and report every mistake.",
        discussion: """
            Prints `file:line:column: message` for each mistake and exits 78, or prints `ok` and exits 0. \
            What is no mistake but perhaps not meant, such as an upstream that no route uses, is a `warning`.
            """
    )

    @OptionGroup var file: FileOption
    @Argument(
        help: ArgumentHelp("The file to check; same as --config.", valueName: "file"), completion: .file(),
        transform: FileOption.path(of:))
    var path: String?

    func validate() throws {
        if path != nil, file.config != nil {
            throw ValidationError("Give the file either as an argument or with --config, not both.")
        }
    }

    func run() throws {
        var source = ConfigurationSource(path: path ?? file.config)
        // For `check`, unlike `serve`, a missing default file is a mistake.
        source.path = source.readPath
        do throws(ConfigurationSource.Failure) {
            for warning in try source.load().warnings { System.writeError("\(warning.warning)\n") }
        } catch {
            throw error.report()
        }
        try output("\(source.readPath): ok\n")
    }
}
