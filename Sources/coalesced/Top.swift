import ArgumentParser
import Libevent

/// `coalesced top`: the counters of a running proxy, again and again.
struct Top: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Watch the counters of a running proxy.",
        discussion: "Shows what each counter stands at and how fast it grows, once a second, until interrupted."
    )

    @OptionGroup var admin: AdminOption

    func run() throws {
        var before: [String: Double] = [:]
        while true {
            let page = MetricsPage(try admin.ask("GET", "/metrics"))
            // Cursor home, then erase only what is left of the last picture: no flicker.
            try output("\u{1B}[H\(page.table(since: before))\u{1B}[J")
            before = page.values
            try pause()
        }
    }

    private func pause() throws {
        let loop = try EventLoop()
        loop.schedule(after: 1_000_000_000) { loop.stop() }
        loop.run()
    }
}

/// The samples of a page in Prometheus' text format.
struct MetricsPage {
    /// In the order of the page: name with labels, and value.
    let samples: [(name: String, value: Double)]

    init(_ text: String) {
        samples = text.split(separator: "\n").compactMap { line in
            guard !line.hasPrefix("#"), let space = line.lastIndex(of: " ") else { return nil }
            return Double(line[line.index(after: space)...]).map { (String(line[..<space]), $0) }
        }
    }

    var values: [String: Double] { Dictionary(samples.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 }) }

    /// Everything except empty counters and the buckets of histograms, one per line, with its growth since the last
    /// look. A server that is not up is news, not empty.
    func table(since before: [String: Double]) -> String {
        let shown = samples.filter {
            ($0.value != 0 || $0.name.hasPrefix("coalesced_upstream_server_up{")) && !$0.name.contains("_bucket")
        }
        let width = shown.map(\.name.count).max() ?? 0
        return shown.map { sample in
            let growth = sample.value - (before[sample.name] ?? sample.value)
            let rate = growth != 0 ? "\(growth > 0 ? "+" : "")\(Self.short(growth))/s" : ""
            let name = sample.name + String(repeating: " ", count: width - sample.name.count)
            return "\(name)  \(Self.short(sample.value))  \(rate)\u{1B}[K\n"
        }.joined()
    }

    /// Whole numbers without a point, others with three digits behind it.
    private static func short(_ number: Double) -> String {
        guard number.magnitude < 1e15 else { return "\(number)" }
        return number == number.rounded() ? "\(Int(number))" : "\((number * 1000).rounded() / 1000)"
    }
}
