import ArgumentParser

/// `coalesced check`: what `serve` would say about the file.
struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check a configuration file and report every mistake.",
        discussion: "Prints `file:line:column: message` for each mistake and exits 78, or prints `ok` and exits 0."
    )

    @OptionGroup var file: FileOption
    @Argument(
        help: ArgumentHelp("The file to check; same as --config.", valueName: "file"), transform: FileOption.path(of:))
    var path: String?

    func validate() throws {
        if path != nil, file.config != nil {
            throw ValidationError("Give the file either as an argument or with --config, not both.")
        }
    }

    func run() throws {
        var source = ConfigurationSource(path: path ?? file.config)
        // For a check, a missing file is a mistake.
        source.path = source.readPath
        do throws(ConfigurationSource.Failure) {
            _ = try source.load()
        } catch {
            throw error.report()
        }
        try output("\(source.readPath): ok\n")
    }
}
