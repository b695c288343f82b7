import Testing

/// What make(1) does, where it builds nothing.
@Suite(.scenario) struct MakefileTests {
    /// Runs make on a copy of the Makefile in a folder of its own.
    private func make(_ words: String...) throws -> Program.Run {
        let folder = try System.makeTemporaryFolder()
        try System.write(System.contents(of: "\(Repository.folder)/Makefile"), to: "\(folder)/Makefile")
        // The program is no word of make's.
        let program = try Program(
            folder: folder, words, shell: "shift; exec make -C \"\(folder)\" \"$@\"")
        defer { program.stop() }
        return try Program.Run(exit: program.exited(), output: program.output, errors: program.diagnostics)
    }

    @Test func `make install before any build names the missing step`() throws {
        let install = try make("install", "DESTDIR=/nowhere")
        #expect(install.exit == .code(2), "\(install.everything)")
        #expect(install.errors.contains("run `make build` first"), "\(install.everything)")
        #expect(!install.everything.contains("cannot stat"), "\(install.everything)")
    }

    @Test func `a build on a terminal uses the same options as a build into a pipe`() throws {
        for (target, count) in [("build", 1), ("test", 3)] {
            let steps = try make("--dry-run", target).output.split(separator: "\n").filter {
                $0.contains(#/swift (build|test)/#) && !$0.contains("--skip-build")
            }
            #expect(steps.count >= count - 1 && steps.count > 0, "\(steps)")
            // By itself, swift has a compiler whose messages go to a terminal colour them, and what was compiled with another
            // option is compiled again.
            for step in steps { #expect(step.contains("--no-color-diagnostics"), "\(step)") }
        }
    }
}
