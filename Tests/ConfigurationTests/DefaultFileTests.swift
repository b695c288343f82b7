import Glibc
import Routing
import Telemetry
import Testing
import Upstream

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
        try expect("config/coalesced.yaml", isMadeAs: Self.made)
    }

    @Test func `the manual page of the file is generated from the key table and the defaults`() throws {
        try expect("docs/coalesced.yaml.5", isMadeAs: ManualFile.made)
    }

    /// With `COALESCED_WRITE=1` a file that differs is written anew.
    private func expect(_ path: String, isMadeAs made: String) throws {
        let shipped = try String(contentsOfRepositoryFile: path)
        let shippedLines = shipped.split(separator: "\n", omittingEmptySubsequences: false)
        let madeLines = made.split(separator: "\n", omittingEmptySubsequences: false)
        for (number, (shipped, made)) in zip(shippedLines, madeLines).enumerated() {
            #expect(shipped == made, "line \(number + 1) of \(path)")
        }
        #expect(shippedLines.count == madeLines.count)
        if shipped != made, unsafe getenv("COALESCED_WRITE") != nil { try made.write(toRepositoryFile: path) }
    }

    /// It is short, and has no more than what a newcomer reads first: one line to change.
    @Test func `the installed file needs one changed line, and has the defaults except for the access log`() throws {
        let installed = try String(contentsOfRepositoryFile: "config/installed.yaml")
        guard case .failure(let mistakes) = Configuration.load(text: installed, path: "f") else {
            Issue.record("it has an upstream")
            return
        }
        #expect(mistakes.all.count == 1 && mistakes.all.allSatisfy { $0.message.contains("`upstreams` is empty") })
        let comment = try #require(installed.firstMatch(of: #/\n# +(upstreams: .+)\n/#))
        let changed = installed.replacing("\nupstreams: []\n", with: "\n\(comment.1)\n")
        var expected = Settings()
        expected.upstreams[0].name = "app"
        expected.accessLog.target = .file(path: "/var/log/coalesced/access.log")
        #expect(try Configuration.load(text: changed, path: "f").get() == expected)
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
                shared: {prefix: x}
                admin: {address: off, socket-mode: 0600, purge: false}
                access-log: {format: json}
                """, path: "f"
        ).get()
        let keys = Settings().keysAtStart(changedBy: other)
        // The key stands below its comment.
        var (names, comment) = ([Substring](), "")
        for line in shipped.split(separator: "\n").map({ $0.drop { $0 == " " } }) {
            guard !line.hasPrefix("#") else {
                comment += line.dropFirst()
                continue
            }
            if comment.contains("Read at the start only.") { names.append(line.prefix { $0 != ":" }) }
            comment = ""
        }
        #expect(names == keys.map { $0.split(separator: ".").last ?? "" })
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
