import Foundation
import Testing

/// What the page of the library prints is what the tests here compile and run.
struct PrintedCodeTests {
    private static let target = URL(filePath: #filePath).deletingLastPathComponent()
    private static let page = target.appending(path: "../../Sources/Coalescing/Coalescing.docc/Coalescing.md")

    @Test func `every line of code on the page stands in these tests, in its order`() throws {
        let files = try FileManager.default.contentsOfDirectory(at: Self.target, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "swift" }
        let sources = try files.map { Self.lines(try String(contentsOf: $0, encoding: .utf8)[...]) }
        let parts = try String(contentsOf: Self.page, encoding: .utf8).components(separatedBy: "```")
        let printed = parts.filter { $0.hasPrefix("swift\n") }
        #expect(!printed.isEmpty)
        for code in printed {
            let lines = Self.lines(code.dropFirst("swift\n".count))
            #expect(sources.contains { $0.contains(lines) }, "not in these tests:\n\(code)")
        }
    }

    /// Without indentation and empty lines.
    private static func lines(_ text: Substring) -> [Substring] {
        text.split(separator: "\n").map { $0.trimmingPrefix { $0 == " " } }.filter { !$0.isEmpty }
    }
}
