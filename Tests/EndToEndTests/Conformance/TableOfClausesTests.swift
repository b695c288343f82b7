import Testing

/// The table of clauses names tests; a name that no test bears is a promise that nobody keeps.
@Suite struct TableOfClausesTests {
    /// By suite: the tests in backquotes, read from the sources, and the promises of the conversations.
    private static func names() throws -> [String: [String]] {
        var names: [String: [String]] = [:]
        for (table, cases) in Conformance.tables {
            names[table] = cases.map(\.promise)
            names[String(table.split(separator: ".")[0]), default: []] += cases.map(\.promise)
        }
        for file in System.sources(in: "\(Repository.folder)/Tests") {
            var suite = ""
            for line in System.contents(of: file).split(separator: "\n") {
                if line.contains("Tests"), let type = line.firstMatch(of: /(?:struct|class) (\w+Tests)\b/) {
                    suite = String(type.1)
                }
                if line.contains("func `"), let test = line.firstMatch(of: /func `(.+?)`/), !suite.isEmpty {
                    names[suite, default: []].append(String(test.1))
                }
            }
        }
        return names
    }

    @Test func `every test that the table of clauses names exists`() throws {
        let table = TableOfClauses(System.contents(of: "\(Repository.folder)/docs/conformance.md"))
        let names = try Self.names()
        #expect(table.rows.count > 140)
        for row in table.rows {
            for reference in row.tests {
                guard let known = names[reference.suite] else {
                    Issue.record("\(row.clause): there is no \(reference.suite)")
                    continue
                }
                for name in TableOfClauses.unknown(in: reference.names, of: known) {
                    Issue.record("\(row.clause): \(reference.suite) has no \(name)")
                }
            }
        }
    }

    /// A name in the table, or in `--filter`, means one suite.
    @Test func `no two suites have the same name, whatever its case`() {
        var files: [String: String] = [:]
        for file in System.sources(in: "\(Repository.folder)/Tests") {
            for suite in System.contents(of: file).matches(of: /(?:struct|class) (\w+Tests)\b/) {
                let former = files.updateValue(file, forKey: suite.1.lowercased())
                #expect(former == nil, "\(suite.1) is in \(former ?? "") and in \(file)")
            }
        }
        #expect(files.count > 100)
    }

    @Test func `every clause of RFC 9111 with a requirement for a shared cache has a row`() {
        let table = TableOfClauses(System.contents(of: "\(Repository.folder)/docs/conformance.md"))
        let clauses =
            [
                "3", "3.1", "3.2", "3.3", "3.4", "3.5", "4", "4.1", "4.2", "4.2.1", "4.2.2", "4.2.3", "4.2.4", "4.3.1",
                "4.3.2", "4.3.3", "4.3.4",
                "4.3.5", "4.4", "5.1", "5.2", "5.2.1", "5.2.2", "5.2.3", "5.3", "5.4", "5.5",
            ] + (1...7).map { "5.2.1.\($0)" } + (1...10).map { "5.2.2.\($0)" }
        for clause in clauses { #expect(table.rows.contains { $0.clause.hasPrefix("§\(clause) ") }, "§\(clause)") }
    }

    @Test func `a name is found with and without the words that the table leaves out`() {
        let known = ["a, b", "c says d", "302 is stored"]
        #expect(TableOfClauses.unknown(in: "a, b, c says d", of: known).isEmpty)
        #expect(TableOfClauses.unknown(in: "a, b; c … d; *status* is stored; c … (a remark)", of: known).isEmpty)
        #expect(TableOfClauses.unknown(in: "a; says d; c", of: known) == ["a", "says d", "c"])
    }
}
