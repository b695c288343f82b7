import ArgumentParser
import Configuration
import Libevent
import Proxy
import Routing

/// `coalesced check`: reports the mistakes and warnings that `serve` would report about the file.
struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check a configuration file and report every mistake.",
        discussion: """
            Prints `file:line:column: message` for each mistake and exits 78, or prints `ok` and exits 0. \
            What is no mistake but perhaps not meant, such as an upstream that no route uses, or a certificate that expires \
            within 14 days, is a `warning`. Certificates are printed with their names, issuer and expiry. If the settings have a `shared.engine`, it is asked how its memory is bounded, which takes a second at most. With \
            --print it prints the settings that `serve` would use with the same file, variables \
            (COALESCED_STORAGE_MEMORY for `storage: {memory: …}`, and so on) and flags, and where each comes from.
            """
    )

    @OptionGroup var file: FileOption
    @OptionGroup var flags: SettingFlags
    @Flag(help: "Print the settings, each with the line, variable or flag that it comes from.") var print = false
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
        var source = ConfigurationSource(path: path ?? file.config, flags: flags.overrides)
        // A file that is to be checked must be there; to `serve`, a missing default file means the defaults.
        if !print { source.path = source.readPath }
        let reading: ConfigurationSource.Reading
        do throws(ConfigurationSource.Failure) {
            reading = try source.read(mayWait: true)
        } catch {
            throw error.report()
        }
        for warning in reading.settings.warnings { System.writeError("\(warning.warning)\n") }
        guard print else {
            try warnOfEngine(reading)
            let certificates = CertificateReview(of: reading.settings, at: System.wallClockSeconds).lines
            return try output((certificates + ["\(source.readPath): ok"]).map { $0 + "\n" }.joined())
        }
        try output(Configuration.printout(reading.settings, from: reading.sources).map { $0 + "\n" }.joined())
    }

    /// Prints the faults of the engine of the shared tier, if there is one. This is the only part of the check that
    /// connects anywhere.
    private func warnOfEngine(_ reading: ConfigurationSource.Reading) throws {
        guard let tier = reading.settings.proxy.sharedTier else { return }
        let place = reading.sources.place(ofKey: "shared.engine") ?? "shared.engine"
        let loop = try EventLoop()
        let review = EngineReview(tier, on: loop) { findings in
            for finding in findings {
                System.writeError("\(Mistake(path: place, position: nil, message: finding.text).warning)\n")
            }
            loop.stop()
        }
        loop.run()
        withExtendedLifetime(review) {}
        loop.finish()
    }
}
