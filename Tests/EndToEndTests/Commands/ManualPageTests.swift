import Testing

/// `docs/coalesced.8` says of the command line what the program says itself.
@Suite(.scenario) struct ManualPageTests {
    private static let page = System.contents(of: "\(Repository.folder)/docs/coalesced.8")

    /// The lines of a section, without its heading.
    private static func section(_ name: String) -> [Substring] {
        let lines = page.split(separator: "\n")
        return Array(lines.drop { $0 != ".Sh \(name)" }.dropFirst().prefix { !$0.hasPrefix(".Sh ") })
    }

    @Test func `the manual page has the commands of the help`() throws {
        let help = try Program.run("--help").output
        let listed = help.split(separator: "\n").drop { $0 != "SUBCOMMANDS:" }.compactMap {
            $0.firstMatch(of: #/^  ([a-z]+) /#).map { String($0.1) }
        }
        let described = Self.section("DESCRIPTION").compactMap {
            $0.wholeMatch(of: /\.It Cm ([a-z]+)/).map { String($0.1) }
        }
        #expect(listed == described && !listed.isEmpty)
    }

    @Test(arguments: ["serve", "check", "demo", "purge", "drain", "undrain", "reload", "status", "top"])
    func `the synopsis of each command is the usage in the help of the command`(_ command: String) throws {
        let help = try Program.run(command, "--help").output
        let usage = help.split(separator: "\n").first { $0.hasPrefix("USAGE: ") } ?? ""
        let synopsis =
            Self.section("SYNOPSIS").split(separator: ".Nm").first { $0.contains { $0.hasSuffix("Cm \(command)") } }
            ?? []
        let written = synopsis.joined(separator: "\n")
        // The usage says `[<options>]` where there are many.
        let list = help.split(separator: "\n").drop { $0 != "OPTIONS:" }.filter {
            $0.hasPrefix("  --") && !$0.hasPrefix("  --version ")
        }
        let named =
            usage.contains("[<options>]")
            ? list.map { $0.split(separator: "   ", maxSplits: 1)[0] }.joined(separator: "\n") : String(usage)
        let options = Set(named.matches(of: /--([a-z-]+)(?: <([^>]+)>)?/).map { "\($0.1) \($0.2 ?? "")" })
        #expect(options == Set(written.matches(of: /Fl -([a-z-]+)(?: Ar ([^ \n]+))?/).map { "\($0.1) \($0.2 ?? "")" }))
        let arguments = Set(usage.matches(of: /\[<([a-z]+)>(?: \.\.\.)?\]/).map(\.output.1).filter { $0 != "options" })
        #expect(arguments == Set(written.matches(of: /(?:\||Oc) Ar ([a-z]+)/).map(\.output.1)))
        let described = Self.section("OPTIONS").filter { $0.hasPrefix(".It ") }.flatMap {
            $0.matches(of: /Fl -([a-z-]+)/).map(\.output.1)
        }
        for option in help.matches(of: /--([a-z-]+)/).map(\.output.1) {
            #expect(described.contains(option), "--\(option)")
        }
    }

    @Test func `the manual page has the signals in the help of serve`() throws {
        let help = try Program.run("serve", "--help").output
        let described = Self.section("SIGNALS").filter { $0.hasPrefix(".It ") }.joined()
        #expect(
            Set(help.matches(of: /SIG[A-Z0-9]+/).map(\.output))
                == Set(described.matches(of: /SIG[A-Z0-9]+/).map(\.output)))
        #expect(help.contains("drain-delay"), "what a second one does depends on it")
    }

    @Test func `the manual page has every exit code of the program`() {
        let codes = System.contents(of: "\(Repository.folder)/Sources/coalesced/ExitStatus.swift").matches(
            of: /ExitCode\((\d+)\)/
        ).map { String($0.1) }
        let described = Self.section("EXIT STATUS").compactMap { $0.wholeMatch(of: /\.It (\d+)/).map { String($0.1) } }
        #expect(!codes.isEmpty && described == ["0", "64"] + codes)
    }
}
