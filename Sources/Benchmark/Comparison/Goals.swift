/// The goals of the hot path, each with its measured value, and with the value of the bare responder in the place of
/// coalesced, which does only the work that the kernel needs. In italics: the same by another measure, for which no
/// goal was set.
struct Goals {
    private static let perSecond = "requests/s", cpu = "CPU µs/request"

    private enum Bound {
        case atMost(Double)
        case atLeast(Double)

        /// By how much `value` misses the bound; `nil` if it meets it.
        func miss(of value: Double) -> String? {
            switch self {
            case .atMost(let bound): value <= bound ? nil : "\(((value / bound - 1) * 100).short) % above"
            case .atLeast(let bound): value >= bound ? nil : "\(((1 - value / bound) * 100).short) % below"
            }
        }

        var text: String {
            switch self {
            case .atMost(let bound): "≤ \(bound.short)"
            case .atLeast(let bound): "≥ \(bound.short)"
            }
        }
    }

    private let report: Report
    private(set) var table =
        "| measure | goal | aim | measured | bare responder | |\n| --- | ---: | ---: | ---: | ---: | --- |\n"

    init(_ report: Report) {
        self.report = report
        ratio(
            "CPU of a 1 KiB hit ÷ bare responder", "hit, 1 KiB", Comparison.pairedCPU, [.bare], .atMost(1.15), aim: 1.1)
        own("heap allocations of a hit", Comparison.counted, Comparison.allocated, .atMost(0))
        ratio("1 KiB hits/s ÷ HAProxy", "hit, 1 KiB", Comparison.pairedRate, [.haproxy], .atLeast(1.25))
        ratio("1 KiB hits/s ÷ nginx", "hit, 1 KiB", Comparison.pairedRate, [.nginx], .atLeast(2.5))
        ratio("1 KiB hits/s ÷ Varnish", "hit, 1 KiB", Comparison.pairedRate, [.varnish], .atLeast(3.5))
        let packaged = Comparison.packaged
        for (kind, least) in [(Kind.haproxy, 1.25), (.nginx, 2.5), (.varnish, 3.5)] {
            ratio(
                "*1 KiB hits/s ÷ \(kind.name), as packaged, with a log*", packaged, Comparison.pairedRate, [kind],
                .atLeast(least))
            ratio(
                "*1 KiB hits/s ÷ \(kind.name), by wrk*", "hit, 1 KiB, by wrk", Self.perSecond, [kind], .atLeast(least))
        }
        for size in ["100 KiB", "1 MiB"] {
            ratio(
                "\(size) hits/s ÷ best peer", "hit, \(size)", Comparison.pairedRate, Kind.peers, .atLeast(1.1))
            ratio(
                "*\(size) hits/s ÷ best peer, by wrk*", "hit, \(size), by wrk", Self.perSecond, Kind.peers,
                .atLeast(1.1))
        }
        ratio("CPU of a stored miss ÷ nginx", "stored miss, 1 KiB", Self.cpu, [.nginx], .atMost(1))
        ratio("CPU of a stored miss ÷ Varnish", "stored miss, 1 KiB", Self.cpu, [.varnish], .atMost(1))
        for (kind, most) in [(Kind.haproxy, 1.1), (.nginx, 1)] {
            ratio("CPU of a pass ÷ \(kind.name)", "pass, 1 KiB", Comparison.pairedCPU, [kind], .atMost(most))
            ratio(
                "*CPU of a pass ÷ \(kind.name), as packaged, with a log*", Comparison.packagedPass,
                Comparison.pairedCPU,
                [kind], .atMost(most))
        }
        own(
            "10,000 waiters: last done after the origin, ms", "10,000 waiters", "last byte, ms after origin",
            .atMost(150))
        own("10,000 waiters: CPU µs a waiter", "10,000 waiters", "CPU µs/waiter", .atMost(20))
        own("*the same, of a response that comes whole*", "10,000 waiters, whole", "CPU µs/waiter", .atMost(20))
        own("other clients' p99 in a storm ÷ unloaded", "another URL in a storm", "p99 ÷ unloaded", .atMost(2))
        own("*the same, until its clients have left too*", "another URL in a storm", "the same ÷ unloaded", .atMost(2))
        own("idle connection, bytes", "idle connections", "bytes each", .atMost(700), aim: 400)
        own(
            "stored object, bytes over head and payload", "stored objects", "bytes over head and payload", .atMost(300),
            aim: 200)
        own("two workers ÷ one, by CPU", "two workers", "times one, by CPU", .atLeast(1.8))
        own("*the same, pipelined*", "two workers, 16 pipelined", "times one, by CPU", .atLeast(1.8))
        own("start to first answer, ms", "start", "ms to first answer", .atMost(30))
    }

    private mutating func goal(_ name: String, _ bound: Bound, aim: Double?, _ value: Double?, bare: Double?) {
        let verdict =
            value.map { value in bound.miss(of: value).map { "**missed**, \($0)" } ?? "met" }
            ?? "not measured in this run"
        table +=
            "| \(name) | \(bound.text) | \(aim?.short ?? "") | \(value?.short ?? "") | \(bare?.short ?? "") | \(verdict) |\n"
    }

    /// Adds a goal for a figure of coalesced.
    private mutating func own(_ name: String, _ row: String, _ figure: String, _ bound: Bound, aim: Double? = nil) {
        let line = report.line(row, figure)
        goal(name, bound, aim: aim, line?.value(.coalesced), bare: line?.value(.bare))
    }

    /// Adds a goal for coalesced's figure divided by the figure of the best of `kinds`.
    private mutating func ratio(
        _ name: String, _ row: String, _ figure: String, _ kinds: [Kind], _ bound: Bound, aim: Double? = nil
    ) {
        let line = report.line(row, figure)
        func best(_ own: (Kind) -> Double?) -> Double? {
            let ratios = kinds.compactMap(own)
            return if case .atMost = bound { ratios.max() } else { ratios.min() }
        }
        let bare =
            kinds == [.bare]
            ? nil : best { kind in line?.value(.bare).flatMap { bare in line?.value(kind).map { bare / $0 } } }
        goal(
            name + (figure.hasSuffix(Comparison.byPairs) ? Comparison.byPairs : ""), bound, aim: aim,
            best { line?.ratio(to: $0) }, bare: bare)
    }
}
