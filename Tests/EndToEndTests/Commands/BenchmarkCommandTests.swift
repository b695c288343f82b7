import Glibc
import Testing

/// What the project measures itself with says what keeps it from that.
@Suite(.scenario) struct BenchmarkCommandTests {
    /// Built with the tests, beside them.
    private static let path: String? = {
        let folders = sequence(first: Substring(CommandLine.arguments[0])) { path in
            path.lastIndex(of: "/").map { path[..<$0] }
        }
        return folders.map { "\($0)/Benchmark" }.first { System.isExecutable($0) }
    }()

    @Test(
        .enabled(if: path != nil, "Benchmark is not built"),
        arguments: [
            (["compare", "--quick"], "no program at .build/release/coalesced: "),
            (["shared", "--quick"], "no program at .build/release/coalesced: "),
            (["simulate", "--write", "/nowhere/page.md"], "/nowhere/page.md cannot be written"),
            (["origin", "PORT"], ": Address already in use"),
        ])
    func `a benchmark that cannot run prints one line and exits with 1`(_ words: [String], _ said: String) throws {
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        let path = try #require(Self.path)
        let taken = try Socket.listen()
        defer { Socket.close(taken.descriptor) }
        let words = words.map { $0 == "PORT" ? "\(taken.port)" : $0 }
        let child = try Spawn.start(
            "/bin/sh", ["-c", "cd / && exec \"$@\"", "sh", path] + words, output: "/dev/null",
            errors: "\(folder)/stderr")
        var exit: Spawn.Exit?
        defer { if exit == nil { Spawn.signal(child, SIGKILL) } }
        try eventually("it ends") {
            exit = Spawn.poll(child)
            return exit != nil
        }
        let errors = System.contents(of: "\(folder)/stderr")
        #expect(exit == .code(1) && errors.hasPrefix("Benchmark: ") && errors.contains(said), "\(errors)")
        #expect(errors.split(separator: "\n").count == 1, "\(errors)")
    }
}
