/// `docs/conformance.md` as data: what each row says of tests.
struct TableOfClauses {
    struct Row {
        let clause: String
        /// What stands in the columns 'test' and 'end to end'.
        let tests: [Reference]
    }

    /// `Suite`: name, name …
    struct Reference {
        let suite: String
        /// With `…` for anything, several separated by commas; empty for the whole suite.
        let names: String
    }

    let rows: [Row]

    init(_ text: String) {
        let tables = text.components(before: "\n## Where we differ on purpose")
        rows = tables.split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).map { $0.trimmed }
            guard cells.count == 6, cells[1] != "clause", !cells[1].hasPrefix("---") else { return nil }
            return Row(clause: cells[1], tests: Self.references(cells[3]) + Self.references(cells[4]))
        }
    }

    /// Each name in backquotes begins a reference; what follows its colon, up to the next one, are names of tests.
    private static func references(_ cell: String) -> [Reference] {
        let parts = cell.split(separator: "`", omittingEmptySubsequences: false)
        return stride(from: 1, to: parts.count, by: 2).map { index in
            let behind = index + 1 < parts.count ? parts[index + 1].trimmed : ""
            let names = behind.hasPrefix(":") ? behind.dropFirst().trimmed : ""
            return Reference(suite: String(parts[index]), names: names.trimming(",; "))
        }
    }

    /// Names in `list` that none of `known` is; names may hold commas themselves.
    static func unknown(in list: String, of known: [String]) -> [String] {
        let pieces = list.replacing(";", with: ",").split(separator: ",").map { $0.trimmed }
        var unknown: [String] = []
        var start = 0
        while start < pieces.count {
            let end = (start + 1...pieces.count).reversed().first { end in
                let candidate = pieces[start..<end].joined(separator: ", ")
                return known.contains { fits($0, candidate) }
            }
            if end == nil { unknown.append(pieces[start]) }
            start = end ?? start + 1
        }
        return unknown
    }

    /// `…`, and what is set in asterisks, stand for anything; a remark in brackets for nothing.
    static func fits(_ name: String, _ pattern: String) -> Bool {
        var pattern = pattern
        if pattern.hasSuffix(")"), let open = pattern.lastIndex(of: "(") { pattern = pattern[..<open].trimmed }
        let name = name.replacing(";", with: ",")
        var rest = name[...]
        for (index, part) in wildcards(pattern).split(separator: "…", omittingEmptySubsequences: false).map({
            $0.trimmed
        }).enumerated() {
            if part.isEmpty { continue }
            guard let found = rest.firstRange(of: part), index > 0 || found.lowerBound == name.startIndex else {
                return false
            }
            rest = rest[found.upperBound...]
        }
        return rest.isEmpty || pattern.contains("…") || pattern.contains("*")
    }

    private static func wildcards(_ pattern: String) -> String {
        let parts = pattern.split(separator: "*", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return pattern }
        return parts[0] + "…" + parts[2]
    }
}

extension StringProtocol {
    var trimmed: String { trimming(" ") }

    fileprivate func trimming(_ characters: String) -> String {
        var rest = self[...]
        while let first = rest.first, characters.contains(first) { rest.removeFirst() }
        while let last = rest.last, characters.contains(last) { rest.removeLast() }
        return String(rest)
    }

    fileprivate func components(before end: String) -> String {
        firstRange(of: end).map { String(self[..<$0.lowerBound]) } ?? String(self)
    }
}
