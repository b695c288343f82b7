import Routing
import Testing

@testable import Configuration

/// `config/coalesced.yaml` tells the truth about the defaults.
@Suite struct `The shipped file` {
    /// What it is to hold.
    private static var made: String {
        let head = DefaultFile.comment(
            """
            The configuration of coalesced. Every key is here, with its default: a file needs only what differs. \
            `coalesced check` names the line and column of every mistake; `SIGHUP` makes a running proxy read the file \
            again. Durations are written 500ms, 30s, 5m, 1h, 1d; sizes 512B, 64KiB, 256MiB, 1GB.
            """)
        let lines = DefaultFile.lines(of: KeyTable.all, in: Settings())
        return (head + [""] + lines).joined(separator: "\n") + "\n"
    }

    @Test func `the shipped file is generated from the key table and the defaults`() throws {
        let shipped = try String(contentsOfRepositoryFile: "config/coalesced.yaml")
        let shippedLines = shipped.split(separator: "\n", omittingEmptySubsequences: false)
        let madeLines = Self.made.split(separator: "\n", omittingEmptySubsequences: false)
        for (number, (shipped, made)) in zip(shippedLines, madeLines).enumerated() {
            #expect(shipped == made, "line \(number + 1)")
        }
        #expect(shippedLines.count == madeLines.count)
    }

    @Test func `the shipped file gives the default settings`() throws {
        let shipped = try String(contentsOfRepositoryFile: "config/coalesced.yaml")
        let settings = try Configuration.load(text: shipped, path: "coalesced.yaml").get()
        // Besides, the number of clients is one that somebody chose.
        var defaults = Settings()
        defaults.statesMaxConnections = true
        #expect(settings == defaults)
    }

    @Test func `the shipped file and the operating page list the keys that are read only at start`() throws {
        let shipped = try String(contentsOfRepositoryFile: "config/coalesced.yaml")
        let other = try Configuration.load(
            text: """
                listen: 127.0.0.1:1
                socket-mode: 0666
                backlog: 9
                workers: 3
                storage: {shards: 8}
                admin: {address: off}
                access-log: {format: json}
                """, path: "f"
        ).get()
        let keys = Settings().keysAtStart(changedBy: other)
        // A paragraph each, whose first line of values begins with the key.
        let marked = shipped.split(separator: "\n\n").filter {
            $0.replacing("\n# ", with: " ").contains("Read at the start only.")
        }
        let names = marked.compactMap { $0.split(separator: "\n").first { !$0.hasPrefix("#") }?.prefix { $0 != ":" } }
        #expect(names.map(String.init) == keys)
        let listed = keys.dropLast().map { "`\($0)`" }.joined(separator: ", ") + " and `\(keys.last ?? "")`"
        let page = try String(contentsOfRepositoryFile: "docs/operating.md").replacing("\n", with: " ")
        #expect(page.contains("\(listed) are read only at start"))
    }

    @Test func `a changed value in the shipped file changes the settings`() throws {
        let shipped = try String(contentsOfRepositoryFile: "config/coalesced.yaml")
        let changed = shipped.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            line.hasSuffix("max-waiters: 10000") ? "  max-waiters: 7" : String(line)
        }
        let settings = try Configuration.load(text: changed.joined(separator: "\n"), path: "coalesced.yaml").get()
        #expect(settings.proxy.coalescing.maxWaiters == 7)
    }

    @Test(arguments: ["# nothing but a comment\n", "clients:\ncoalescing:\n  # max-waiters: 3\n", "---\n"])
    func `a key left out of the file keeps its default`(text: String) throws {
        #expect(try Configuration.load(text: text, path: "f").get() == Settings())
    }
}
