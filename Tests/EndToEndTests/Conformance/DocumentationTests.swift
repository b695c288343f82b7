import Testing

/// Whoever uses a target reads its public declarations, and what stands above them.
@Suite struct DocumentationTests {
    private static let targets = [
        "Bytes", "Coalescing", "HTTPSemantics", "Libevent", "Storage", "Telemetry", "Upstream", "Routing", "Proxy",
        "Admin", "Configuration", "Redis",
    ]

    @Test(arguments: targets) func `every public declaration is documented`(_ target: String) {
        let files = System.sources(in: "\(Repository.folder)/Sources/\(target)")
        #expect(!files.isEmpty)
        for file in files {
            for line in Self.undocumented(System.contents(of: file)) {
                Issue.record("\(file):\(line): no documentation")
            }
        }
    }

    @Test(arguments: targets) func `every public declaration that throws documents its errors`(_ target: String) {
        for file in System.sources(in: "\(Repository.folder)/Sources/\(target)") {
            for line in Self.unexplained(System.contents(of: file)) {
                Issue.record("\(file):\(line): no reason to throw")
            }
        }
    }

    @Test func `a declaration that throws has its own reason, one that passes errors on needs none`() {
        let text = """
            /// One.
            /// - Throws: never.
            public init() throws(A) {
            public init(b: Int) throws(A) {
            /// Two.
            @discardableResult
            public func c(
                d: Int
            ) async throws -> Int {
            /// Three.
            public func e<E: Error>(_ body: () throws(E) -> Int) throws(E) -> Int {
            /// Four.
            func f() throws(A) {
            /// Five.
            public init(
                g: @escaping (Int) async throws -> (Int, Int)
            ) {
            """
        #expect(Self.unexplained(text) == [4, 7])
    }

    @Test func `a declaration is documented by a comment above it or above the line before`() {
        let text = """
            /// One.
            @inlinable
            public func a() {
            }
            /// Two.
            public var b = 1
            public var c: Int { b }

            public var d = 2
            public init(d: Int) {
                self.d = d
            }
            public func e()
            """
        #expect(Self.undocumented(text) == [9, 13])
    }

    /// The numbers of the lines with a declaration that has none.
    ///
    /// A comment holds for the declarations of one line right below it. What a protocol asks for is documented there;
    /// and an initialiser that takes the properties as they are needs no more than theirs.
    private static func undocumented(_ text: String) -> [Int] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { $0.trimmed }
        var found: [Int] = []
        var isCovered = false
        var hasPublicNames = false
        for (index, line) in lines.enumerated() {
            if line.hasPrefix("///") {
                isCovered = true
                continue
            }
            if isAttribute(line) { continue }
            if line.hasSuffix("{"), line.contains("enum ") || line.contains("extension ") {
                hasPublicNames = line.contains("PublicName")
            }
            if !isCovered, isDeclaration(line), !isOfProtocol(line),
                !(hasPublicNames && line.contains("name: StaticString")), !takesProperties(lines[index...])
            {
                found.append(index + 1)
            }
            isCovered = isCovered && !line.hasSuffix("{") && line.contains(/\b(var|let|case|init|func)\b/)
        }
        return found
    }

    /// The numbers of the lines with a declaration that throws and does not say why.
    private static func unexplained(_ text: String) -> [Int] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { $0.trimmed }
        var found: [Int] = []
        var isExplained = false
        for (index, line) in lines.enumerated() {
            if line.hasPrefix("///") {
                isExplained = isExplained || line.contains("- Throws: ")
                continue
            }
            if isAttribute(line) { continue }
            if !isExplained, isDeclaration(line), throwsOfItself(lines[index...]) { found.append(index + 1) }
            isExplained = false
        }
        return found
    }

    /// Not only what a closure that it is given throws.
    private static func throwsOfItself(_ lines: ArraySlice<String>) -> Bool {
        let end = lines.firstIndex { $0.isEmpty || $0.hasSuffix("{") || $0.hasSuffix("}") } ?? lines.endIndex - 1
        guard lines[lines.startIndex...end].contains(where: { $0.contains("throws") }),
            lines[lines.startIndex].contains(/\b(func|init|var|subscript)\b/)
        else { return false }
        var signature = lines[lines.startIndex...end].joined(separator: " ").replacing(/throws\((\w+)\)/) {
            "throws<\($0.1)>"
        }
        while let parameters = signature.firstRange(of: /\([^()]*\)/) { signature.removeSubrange(parameters) }
        return signature.contains(/\bthrows\b(?!<E>)/)
    }

    /// One line of attributes, and nothing else.
    private static func isAttribute(_ line: String) -> Bool {
        line.hasPrefix("@") && line.wholeMatch(of: /(@\w+(\([^)]*\))? ?)+/) != nil
    }

    /// Not an import or an extension. How a line begins is looked at first: the expression is parsed anew for each line.
    private static func isDeclaration(_ line: String) -> Bool {
        guard ["@", "public ", "open ", "package "].contains(where: { line.hasPrefix($0) }) else { return false }
        return line.contains(
            /^(@\w+(\(.*?\))? )*(public|open|package) (?!import |extension )/)
    }

    /// By the protocols of the standard library.
    private static func isOfProtocol(_ line: String) -> Bool {
        line.contains(
            /static func (==|<)|func hash\(into|var description: String|rawValue: |init\(rawValue|init\(stringLiteral|init\(\) ?\{\}|\boverride\b/
        )
    }

    private static func takesProperties(_ lines: ArraySlice<String>) -> Bool {
        guard lines.first?.contains(/\binit\(/) == true,
            let start = lines.firstIndex(where: { $0.hasSuffix("{") || $0.hasSuffix("}") })
        else { return false }
        if lines[start].hasSuffix("}") { return lines[start].contains(/\{ self\.\w+ = \w+ \}$/) }
        return lines[(start + 1)...].prefix { $0 != "}" }.allSatisfy { $0.wholeMatch(of: /self\.(\w+) = (\w+)/) != nil }
    }
}
