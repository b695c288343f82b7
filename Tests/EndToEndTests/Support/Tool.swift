import Glibc

/// A program that runs to its end, such as `openssl` or an ACME client, which `make test` installs.
enum Tool {
    struct Failed: Error, CustomStringConvertible {
        let words: [String]
        let exit: Spawn.Exit
        let said: String
        var description: String { "\(words.joined(separator: " ")): \(exit)\n\(said.suffix(4000))" }
    }

    /// Runs a program of the path.
    /// - Parameters:
    ///   - variables: `NAME=value`, beside the environment of the tests.
    ///   - input: what it reads.
    /// - Returns: its standard output.
    /// - Throws: unless it ends with 0, with what it said.
    @discardableResult
    static func run(
        _ words: [String], variables: [String] = [], within limit: Duration = .seconds(60)
    ) throws -> String {
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        let child = try Spawn.start(
            "/usr/bin/env", variables + words, output: "\(folder)/out", errors: "\(folder)/err")
        var exit: Spawn.Exit?
        do {
            try eventually("\(words[0]) ends", within: limit) {
                exit = Spawn.poll(child)
                return exit != nil
            }
        } catch {
            Spawn.signal(child, SIGKILL)
            while Spawn.poll(child) == nil { System.nap(.milliseconds(1)) }
            throw error
        }
        let output = System.contents(of: "\(folder)/out")
        if let exit, exit != .code(0) {
            throw Failed(words: words, exit: exit, said: output + System.contents(of: "\(folder)/err"))
        }
        return output
    }
}
