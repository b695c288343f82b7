import Glibc

/// A script that a real client runs: Python with a module that `make test` installs.
final class Python {
    struct Missing: Error, CustomStringConvertible {
        let module: String
        var description: String { "no python3 has the module \(module): `make test` installs it (python3-\(module))" }
    }

    private let child: pid_t
    private let folder: String
    private var ending: Spawn.Exit?

    /// Starts `script`.
    /// - Parameter module: that it imports. Where no Python has it, the test fails: it is never passed over.
    init(_ script: String, importing module: String, _ arguments: String...) throws {
        folder = try System.makeTemporaryFolder()
        try System.write(script, to: "\(folder)/script.py")
        let words = try Self.command(importing: module) + ["-u", "\(folder)/script.py"] + arguments
        child = try Spawn.start(
            words[0], Array(words.dropFirst()), output: "\(folder)/stdout", errors: "\(folder)/stderr")
    }

    deinit {
        if exit == nil {
            Spawn.signal(child, SIGKILL)
            while exit == nil { System.nap(.milliseconds(1)) }
        }
        System.removeFolder(folder)
    }

    /// The whole lines that it has written.
    var lines: [String] {
        System.contents(of: "\(folder)/stdout").split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            .map(String.init)
    }

    func terminate() { if exit == nil { Spawn.signal(child, SIGTERM) } }

    var errors: String { System.contents(of: "\(folder)/stderr") }

    var exit: Spawn.Exit? {
        if ending == nil { ending = Spawn.poll(child) }
        return ending
    }

    /// That of the system, which has what apt-get installed, or the first on the path.
    private static func command(importing module: String) throws -> [String] {
        for command in [["/usr/bin/python3"], ["/usr/bin/env", "python3"]] {
            let probe = try Spawn.start(
                command[0], Array(command.dropFirst()) + ["-c", "import \(module)"], output: "/dev/null",
                errors: "/dev/null")
            var exit: Spawn.Exit?
            try eventually("python3 ends") {
                exit = Spawn.poll(probe)
                return exit != nil
            }
            if exit == .code(0) { return command }
        }
        throw Missing(module: module)
    }
}
