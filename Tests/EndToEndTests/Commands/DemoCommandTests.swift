import Testing

@Suite(.scenario) struct DemoCommandTests {
    @Test func `the demo starts, prints curl lines, and its pages work`() throws {
        let program = try Program(folder: System.makeTemporaryFolder(), ["demo", "--listen", "127.0.0.1:0"])
        defer { program.stop() }
        let curl = #/curl\b[^\n]*?http://127\.0\.0\.1:(\d+)(/[^\s'";|&]*)/#
        try eventually("three lines to try; \(program.diagnostics)") {
            (program.output + program.diagnostics).matches(of: curl).count >= 3
        }
        let lines = (program.output + program.diagnostics).matches(of: curl).map {
            (port: UInt16($0.output.1)!, path: String($0.output.2))
        }
        #expect(Set(lines.map(\.path)).count >= 4)
        for line in lines where line.path != "/metrics" {
            let answer = try Address(endpoint: .tcp(line.port)).get(line.path)
            #expect(
                answer.isClean && answer.status != 404 && answer["via"]?.contains("coalesced") ?? false, "\(line.path)")
        }
        // The page that takes two seconds collapses: that is what the demo is for.
        let crowd = Address(endpoint: .tcp(lines[0].port)).crowd(20, get: lines[0].path)
        #expect(crowd.finished().allSatisfy { $0.isClean })
        program.terminate()
        #expect(try program.exited() == .code(0))
    }
}
