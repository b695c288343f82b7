import ArgumentParser

/// `coalesced check`: what `serve` would say about the file.
struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Find every mistake in a configuration file.",
        discussion: "Prints file:line:column: message for each and exits 78, or `ok` and exits 0."
    )

    @OptionGroup var file: FileOption
    @Argument(help: ArgumentHelp("The same as --config.", valueName: "file"), transform: FileOption.path(of:))
    var path: String?

    func validate() throws {
        if path != nil, file.config != nil { throw ValidationError("Name one file, with --config or without.") }
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
