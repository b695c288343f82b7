/// A program of others, run to its end.
enum Command {
    struct Run {
        let exit: Spawn.Exit
        let output: String
        let errors: String
        var everything: String { output + errors }
    }

    /// - Parameters:
    ///   - input: what it reads; `nil`: nothing.
    ///   - limit: after which it is killed, and `Late` is thrown.
    static func run(_ words: [String], input: String? = nil, within limit: Duration = .seconds(30)) throws -> Run {
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        var all = ["/usr/bin/env"] + words
        if let input {
            try System.write(input, to: "\(folder)/input")
            all = ["/bin/sh", "-c", "exec \"$@\" <\(folder)/input", "sh"] + words
        }
        let child = try Spawn.start(
            all[0], Array(all.dropFirst()), output: "\(folder)/output", errors: "\(folder)/errors")
        var exit: Spawn.Exit?
        do {
            try eventually("\(words[0]) ends", within: limit) {
                exit = Spawn.poll(child)
                return exit != nil
            }
        } catch {
            Spawn.signal(child, 9)
            while Spawn.poll(child) == nil { System.nap(.milliseconds(1)) }
            throw error
        }
        return Run(
            exit: exit ?? .code(0), output: System.contents(of: "\(folder)/output"),
            errors: System.contents(of: "\(folder)/errors"))
    }

    /// `openssl s_client`, which trusts the authority of the tests and sends `input`, then keeps the connection until the
    /// peer ends it.
    static func openssl(_ site: SecureSite, _ arguments: [String], input: String = "") throws -> Run {
        try run(
            ["openssl", "s_client", "-connect", "127.0.0.1:\(site.port)", "-CAfile", "\(site.folder)/authority.pem"]
                + arguments, input: input)
    }

    /// `curl`, which finds `name` here.
    static func curl(_ site: SecureSite, name: String = "localhost", path: String = "/x", _ arguments: String...) throws
        -> Run
    {
        try run(
            ["curl", "-sS", "--max-time", "20", "--cacert", "\(site.folder)/authority.pem", "--resolve"]
                + ["\(name):\(site.port):127.0.0.1", "https://\(name):\(site.port)\(path)"] + arguments)
    }
}
