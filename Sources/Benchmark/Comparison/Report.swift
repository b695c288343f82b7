/// One line of the table: one figure of one row, for every program.
struct Line {
    enum Cell {
        case number(Double, note: String = "")
        /// The reason why there is no number.
        case unable(String)
    }

    let row: String
    let figure: String
    var cells: [Kind: Cell] = [:]

    func value(_ kind: Kind) -> Double? {
        if case .number(let value, _)? = cells[kind], value.isFinite { value } else { nil }
    }

    func note(_ kind: Kind) -> String {
        if case .number(_, let note)? = cells[kind] { note } else { "" }
    }

    func text(_ kind: Kind) -> String {
        switch cells[kind] {
        case .number(let value, let note)?: value.isFinite ? value.short + note : "—"
        case .unable(let why)?: why
        case nil: "—"
        }
    }

    /// coalesced's figure divided by the figure of `kind`.
    func ratio(to kind: Kind) -> Double? {
        guard let ours = value(.coalesced), let theirs = value(kind), theirs != 0 else { return nil }
        return ours / theirs
    }
}

/// All lines of one run, printed as they come and written as Markdown at the end.
final class Report {
    private(set) var lines: [Line] = []

    func add(_ line: Line) {
        lines.append(line)
        let cells = Kind.allCases.map { "\($0.rawValue) \(line.text($0))" }.joined(separator: "  ")
        let ratios = [Kind.bare, .haproxy, .nginx, .varnish].compactMap { kind in
            line.ratio(to: kind).map { "÷\(kind.rawValue) \($0.short)" }
        }
        say("\(line.row) | \(line.figure): \(cells)  \(ratios.joined(separator: " "))")
    }

    func line(_ row: String, _ figure: String) -> Line? { lines.first { $0.row == row && $0.figure == figure } }

    /// The CPU time of a request or waiter, in every row that has it.
    var summary: String {
        var text = "| CPU µs | " + Kind.allCases.map(\.name).joined(separator: " | ") + " |\n"
        text += "| --- |" + String(repeating: " ---: |", count: Kind.allCases.count) + "\n"
        for line in lines where line.figure.hasPrefix("CPU µs/") {
            text +=
                "| \(line.row) | " + Kind.allCases.map { line.value($0)?.short ?? "" }.joined(separator: " | ") + " |\n"
        }
        return text
    }

    /// The README's sentence about a crowd.
    var crowdSentence: String? {
        let line = line("1,000 waiters", "first byte, ms after origin")
        guard let line, let ours = line.value(.coalesced), let varnish = line.value(.varnish),
            let nginx = line.value(.nginx)
        else { return nil }
        return
            "With 1,000 clients waiting, the last received its first byte \(ours.short) ms after the origin sent it (Varnish \(varnish.short) ms, nginx "
            + "\(nginx.short) ms; one run on two cores, see the [benchmarks](docs/benchmarks.md))."
    }

    var table: String {
        let others: [Kind] = [.bare] + Kind.peers
        var text =
            "| row | figure | " + Kind.allCases.map(\.name).joined(separator: " | ")
            + " | " + others.map { "÷ \($0 == .bare ? "bare" : $0.name)" }.joined(separator: " | ") + " |\n"
        text += "| --- | --- |" + String(repeating: " ---: |", count: Kind.allCases.count + others.count) + "\n"
        var last = ""
        for line in lines {
            let cells = Kind.allCases.map(line.text) + others.map { line.ratio(to: $0)?.short ?? "" }
            text += "| \(line.row == last ? "" : line.row) | \(line.figure) | \(cells.joined(separator: " | ")) |\n"
            last = line.row
        }
        return text
    }
}
