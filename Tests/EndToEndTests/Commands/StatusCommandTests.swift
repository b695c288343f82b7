import Testing

/// What `status` and `top` print, into a pipe or file and on a terminal.
@Suite(.scenario) struct StatusCommandTests {
    private static let isTerminalMade = System.exists("/usr/bin/script")

    /// One of `columns` and `rows` that script(1) makes, whose output is the program's.
    private func onTerminal(
        _ proxy: Program, _ words: [String], columns: Int, rows: Int, kind: String = "xterm"
    ) throws -> Program {
        let shell =
            "TERM=\(kind) exec /usr/bin/script -qec \"stty cols \(columns) rows \(rows); $*\" /dev/null"
        return try Program(
            folder: try System.makeTemporaryFolder(), words + ["--admin", "unix:\(proxy.folder)/admin.sock"],
            shell: shell)
    }

    @Test func `in a file, status is JSON, and top is one table without escape sequences`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            try proxy.get("/x")
            let status = try proxy.command("status")
            let asJSON = try JSON(status.output)["state"]?.string
            #expect(status.exit == .code(0) && asJSON == "running")
            for words in [["top"], ["top", "--once"]] {
                let top = try proxy.command(words)
                #expect(top.exit == .code(0) && !top.output.contains("\u{1B}"), "\(top.everything)")
                #expect(
                    top.output.contains("requests  0/s: hit") && top.output.contains("\nUPSTREAM "), "\(top.output)")
                #expect(top.output.contains("\nlatency   p50/p99") && top.output.contains("\nworkers   "))
            }
        }
    }

    @Test(.enabled(if: isTerminalMade, "script(1) is not installed"))
    func `on a terminal, status is text of the terminal's width, unless JSON is requested`() throws {
        try scenario { _, proxy in
            let status = try onTerminal(proxy, ["status"], columns: 30, rows: 6)
            defer { status.stop() }
            #expect(try status.exited() == .code(0))
            let lines = status.output.split(whereSeparator: \.isNewline)
            #expect(
                lines[0].hasPrefix("coalesced ") && lines.contains { $0.hasPrefix("upstream    origin: ") }, "\(lines)")
            #expect(lines.allSatisfy { $0.count <= 30 } && lines.contains { $0.count == 30 && $0.hasSuffix("…") })
            let asked = try onTerminal(proxy, ["status", "--json"], columns: 30, rows: 6)
            defer { asked.stop() }
            #expect(try asked.exited() == .code(0))
            #expect(asked.output.contains("\"state\": \"running\""), "\(asked.output)")
        }
    }

    @Test(.enabled(if: isTerminalMade, "script(1) is not installed"))
    func `on a terminal, top replaces one screen by the next`() throws {
        try scenario { _, proxy in
            let top = try onTerminal(proxy, ["top"], columns: 40, rows: 5)
            defer { top.stop() }
            try eventually("two screens", within: .seconds(5)) { top.output.split(separator: "\u{1B}[H").count > 2 }
            let screens = top.output.split(separator: "\u{1B}[H").dropLast()
            for screen in screens {
                let lines = screen.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
                // The cursor stands in the fifth.
                #expect(lines.count == 5 && lines[4] == "\u{1B}[J", "\(lines)")
                #expect(lines.dropLast().allSatisfy { $0.hasPrefix("\u{1B}[K") && $0.count <= 43 }, "\(lines)")
            }
            let once = try onTerminal(proxy, ["top", "--once"], columns: 40, rows: 5)
            defer { once.stop() }
            #expect(try once.exited() == .code(0))
            #expect(!once.output.contains("\u{1B}") && once.output.contains("UPSTREAM"), "\(once.output)")
            // Which has no cursor to move.
            let dumb = try onTerminal(proxy, ["top"], columns: 40, rows: 5, kind: "dumb")
            defer { dumb.stop() }
            #expect(try dumb.exited() == .code(0))
            #expect(!dumb.output.contains("\u{1B}") && dumb.output.contains("UPSTREAM"), "\(dumb.output)")
        }
    }
}
