import Testing

/// The rooms of `Proxy` (docs/architecture.md): folders in an order in which each names only types of those above it.
@Suite struct RoomTests {
    private static let rooms = [
        "Request", "Loop", "Delivery", "Lookup", "Fetch", "Waiting", "Transaction", "Connection", "Server",
    ]
    private static let folder = "\(Repository.folder)/Sources/Proxy"
    /// The most lines of one noun: a type with all its extension files.
    private static let longest = 450

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
                lines: text.count { $0 == "\n" }, words: words(of: code),
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
        #expect(rooms.count > 60)
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

    /// The lines of a file without comments and without what stands in strings.
    private static func withoutComments(_ text: String) -> String {
        var code: [UInt8] = []
        var isInLongString = false
        for line in text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            let quotes = line.count { $0 == UInt8(ascii: "\"") }
            if quotes == 3 || isInLongString {
                // A string of several lines begins or ends here, or goes on.
                if quotes == 3 { isInLongString.toggle() }
            } else {
                appendCode(of: line, to: &code)
            }
            code.append(UInt8(ascii: "\n"))
        }
        return String(decoding: code, as: UTF8.self)
    }

    private static func appendCode(of line: Substring.UTF8View, to code: inout [UInt8]) {
        var (isInString, isEscaped) = (false, false)
        var last: UInt8 = 0
        for byte in line {
            if isEscaped {
                isEscaped = false
            } else if isInString, byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isInString.toggle()
            } else if !isInString {
                if byte == UInt8(ascii: "/"), last == byte { return }
                code.append(byte)
            }
            last = byte
        }
    }

    /// The words that begin with a capital letter, as types do.
    private static func words(of code: String) -> Set<Substring> {
        var words: Set<Substring> = []
        for word in code.utf8.split(whereSeparator: { !isOfName($0) }) {
            if let first = word.first, UInt8(ascii: "A")...UInt8(ascii: "Z") ~= first { words.insert(Substring(word)) }
        }
        return words
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 || byte == UInt8(ascii: "_")
    }

    /// The types that are declared at the beginning of a line.
    private static func declared(in code: String) -> [Substring] {
        let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "typealias"]
        let modifiers: Set<Substring> = ["package", "public", "fileprivate", "private", "final"]
        return code.split(separator: "\n").compactMap { line in
            guard line.utf8.first != UInt8(ascii: " ") else { return nil }
            let words = line.split(maxSplits: 5) { !$0.isLetter && !$0.isNumber && $0 != "_" }
                .drop { modifiers.contains($0) }
            guard let kind = words.first, kinds.contains(kind) else { return nil }
            return words.dropFirst().first
        }
    }
}
