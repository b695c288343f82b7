import Testing

/// The rooms of `Proxy` (docs/architecture.md): folders in an order in which each names only types of those above it.
@Suite struct RoomTests {
    private static let rooms = [
        "Configured", "Request", "Loop", "Delivery", "Lookup", "Fetch", "Waiting", "Transaction", "Connection",
        "Worker",
        "Server",
    ]
    private static let folder = "\(Repository.folder)/Sources/Proxy"
    /// The most lines of one noun: a type with all its extension files.
    private static let longest = 550

    private struct File {
        let name: Substring
        let room: String
        let lines: Int
        let words: Set<Substring>
        let types: [Substring]
    }

    private static let files = rooms.flatMap { room in
        System.sources(in: "\(folder)/\(room)").map { path in
            let text = System.contents(of: path)
            let code = withoutComments(text)
            return File(
                name: path.split(separator: "/").last?.split(separator: ".").first ?? "", room: room,
                lines: text.count { $0 == "\n" }, words: Set(code.split { !$0.isLetter && !$0.isNumber && $0 != "_" }),
                types: declared(in: code))
        }
    }

    @Test func `every file of Proxy is in a room`() {
        #expect(System.sources(in: Self.folder).count == Self.files.count)
        #expect(!Self.files.isEmpty)
    }

    @Test func `a file names no type of a room below its own`() {
        var rooms: [Substring: Int] = [:]
        for file in Self.files {
            for type in file.types { rooms[type] = Self.rooms.firstIndex(of: file.room) }
        }
        #expect(rooms.count > 100)
        for file in Self.files {
            guard let own = Self.rooms.firstIndex(of: file.room) else { continue }
            for word in file.words.sorted() {
                if let other = rooms[word], other > own {
                    Issue.record("\(file.room)/\(file.name) names \(word) of \(Self.rooms[other])")
                }
            }
        }
    }

    @Test func `no noun is longer than a person reads at once`() {
        let nouns = Dictionary(grouping: Self.files) { $0.name.split(separator: "+").first ?? "" }
        for (noun, files) in nouns {
            let lines = files.reduce(0) { $0 + $1.lines }
            #expect(lines <= Self.longest, "\(noun) has \(lines) lines in \(files.count) files")
        }
    }

    @Test func `a type in a comment or a string is not a name`() {
        let code = Self.withoutComments(
            "let a = \"B\" // C\n/// D\nfinal class E {\n    struct F {}\n}\n\"\"\"\nG\n\"\"\"\n")
        #expect(Self.declared(in: code) == ["E"])
        #expect(!code.contains("B") && !code.contains("C") && !code.contains("D") && !code.contains("G"))
    }

    private static func withoutComments(_ text: String) -> String {
        text.replacing(/"""[\s\S]*?"""/, with: "").replacing(/\/\/[^\n]*/, with: "")
            .replacing(/"(\\.|[^"\\\n])*"/, with: "")
    }

    /// The types that are declared at the beginning of a line.
    private static func declared(in code: String) -> [Substring] {
        code.matches(
            of:
                /(?:^|\n)(?:package |public |fileprivate |private )?(?:final )?(?:struct|class|enum|protocol|typealias) (\w+)/
        )
        .map(\.1)
    }
}
