import Foundation
import Testing

/// What the pages of the library print is what tests compile and run, and it is short.
struct PrintedCodeTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
    private static let library = root.appending(path: "Sources/Coalescing")

    private static func pages() throws -> [String] {
        let pages = try files(in: library, named: "md")
        return try pages.map { try String(contentsOf: $0, encoding: .utf8) }
    }

    @Test func `every block of code on the pages stands in the tests, line by line`() throws {
        let folders = ["Tests/ExampleTests", "Tests/CoalescingUseTests", "Sources/Benchmark/SingleFlight"]
        let files = try folders.flatMap { try Self.files(in: Self.root.appending(path: $0), named: "swift") }
        let sources = try files.map { Self.lines(try String(contentsOf: $0, encoding: .utf8)) }
        // `.ci/adopt` builds a package with the manifest.
        let printed = try Self.pages().flatMap(Self.code).filter { !$0.hasPrefix("// swift-tools-version") }
        #expect(printed.count > 10)
        for code in printed {
            #expect(sources.contains { $0.contains(Self.lines(code)) }, "not in the tests:\n\(code)")
        }
    }

    @Test func `what the pages link to is public`() throws {
        let sources = try Self.files(in: Self.library, named: "swift").map {
            try String(contentsOf: $0, encoding: .utf8)
        }
        let links = try Self.pages().flatMap {
            try $0.matches(of: Regex("``([A-Za-z]+)[^`\\n]*``", as: (Substring, Substring).self))
        }
        #expect(links.count > 20)
        for name in Set(links.map(\.output.1)).subtracting(["Coalescing"]) {
            let declaration = try Regex("(public|open) .*(class|struct|enum|protocol) \(name)\\b")
            #expect(sources.contains { $0.contains(declaration) }, "\(name)")
        }
    }

    @Test(arguments: [
        ("A user's profile", 15), ("A network request", 40), ("Shared and plain operations", 20),
        ("Operations that depend on others", 30), ("One action for a burst", 8), ("A batch loader", 25),
    ])
    func `an example is as short as an engineer expects`(title: String, most: Int) throws {
        let sections = try Self.pages().flatMap { $0.components(separatedBy: "\n### ") }
        let section = try #require(sections.first { $0.hasPrefix(title) })
        let code = try #require(Self.code(section).first)
        let count = Self.lines(code).count { !$0.hasPrefix("//") }
        #expect(count > 5)
        #expect(count <= most)
    }

    @Test func `no example silences the compiler`() throws {
        for file in try Self.files(in: Self.root.appending(path: "Tests/ExampleTests/Examples"), named: "swift") {
            let code = try String(contentsOf: file, encoding: .utf8)
            for word in ["nonisolated", "@unchecked", "@preconcurrency", "unsafe", "try!", "as!"] {
                #expect(!code.contains(word), "\(word) in \(file.lastPathComponent)")
            }
        }
    }

    private static func files(in folder: URL, named kind: String) throws -> [URL] {
        let all = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects ?? []
        let files = all.compactMap { $0 as? URL }.filter { $0.pathExtension == kind }
        try #require(!files.isEmpty)
        return files
    }

    /// The blocks of Swift in a page.
    private static func code(_ page: String) -> [String] {
        page.components(separatedBy: "\n```").filter { $0.hasPrefix("swift\n") }.map {
            String($0.dropFirst("swift\n".count))
        }
    }

    /// Without indentation, empty lines and imports.
    private static func lines(_ text: String) -> [Substring] {
        text.split(separator: "\n").map { $0.trimmingPrefix { $0 == " " } }
            .filter { !$0.isEmpty && !$0.hasPrefix("import ") }
    }
}
