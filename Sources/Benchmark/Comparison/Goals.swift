/// The goals of the hot path, each with what it was measured to be.
enum Goals {
    private static let perSecond = "requests/s", perCore = "requests/s of a core, by CPU", cpu = "CPU µs/request"

    static func table(_ report: Report) -> String {
        var text = "| goal | measured | |\n| --- | --- | --- |\n"
        func goal(_ name: String, _ value: Double?, atMost: Double? = nil, atLeast: Double? = nil, note: String = "") {
            guard let value, value.isFinite else { text += "| \(name) | not measured in this run | |\n"; return }
            var isMet = true
            var miss = ""
            if let atMost, value > atMost {
                isMet = false
                miss = ", \(((value / atMost - 1) * 100).short) % above"
            }
            if let atLeast, value < atLeast {
                isMet = false
                miss = ", \(((1 - value / atLeast) * 100).short) % below"
            }
            text += "| \(name) | \(value.short)\(note) | \(isMet ? "met" : "**missed**\(miss)") |\n"
        }
        func ratio(_ row: String, _ figure: String, _ kind: Kind) -> Double? { report.line(row, figure)?.ratio(to: kind) }
        func ours(_ row: String, _ figure: String) -> Double? { report.line(row, figure)?.value(.coalesced) }
        /// As it was measured, and as the CPU of a request has it: where the load's core was the full one, the second says more.
        func rate(_ name: String, _ row: String, _ kinds: [Kind], atLeast: Double) {
            for (suffix, figure) in [("", perSecond), (", by CPU", perCore)] {
                goal("\(name)\(suffix) ≥ \(atLeast)", kinds.compactMap { ratio(row, figure, $0) }.min(), atLeast: atLeast)
            }
        }

        func paired(_ name: String, _ row: String, _ figure: String, _ kind: Kind, atMost: Double? = nil, atLeast: Double? = nil) {
            goal(name, ratio(row, figure, kind), atMost: atMost, atLeast: atLeast, note: ", pair by pair")
        }

        paired("CPU of a 1 KiB hit ÷ bare responder ≤ 1.15", "hit, 1 KiB", Comparison.pairedCPU, .bare, atMost: 1.15)
        paired("1 KiB hits/s ÷ HAProxy ≥ 1.25", "hit, 1 KiB", Comparison.pairedRate, .haproxy, atLeast: 1.25)
        rate("1 KiB hits/s ÷ nginx", "hit, 1 KiB", [.nginx], atLeast: 2.5)
        rate("1 KiB hits/s ÷ Varnish", "hit, 1 KiB", [.varnish], atLeast: 3.5)
        rate("100 KiB hits/s ÷ best peer", "hit, 100 KiB", Kind.peers, atLeast: 1.1)
        rate("1 MiB hits/s ÷ best peer", "hit, 1 MiB", Kind.peers, atLeast: 1.1)
        goal("CPU of a stored miss ÷ nginx ≤ 1", ratio("stored miss, 1 KiB", cpu, .nginx), atMost: 1)
        goal("CPU of a stored miss ÷ Varnish ≤ 1", ratio("stored miss, 1 KiB", cpu, .varnish), atMost: 1)
        paired("CPU of a pass ÷ HAProxy ≤ 1.1", "pass, 1 KiB", Comparison.pairedCPU, .haproxy, atMost: 1.1)
        paired("CPU of a pass ÷ nginx ≤ 1", "pass, 1 KiB", Comparison.pairedCPU, .nginx, atMost: 1)
        goal("10,000 waiters: last done after the origin ≤ 150 ms", ours("10,000 waiters", "last byte, ms after origin"), atMost: 150)
        goal("10,000 waiters: CPU ≤ 20 µs a waiter", ours("10,000 waiters", "CPU µs/waiter"), atMost: 20)
        goal("the same, of a response that comes whole", ours("10,000 waiters, whole", "CPU µs/waiter"), atMost: 20)
        goal("other clients' p99 in a storm ÷ unloaded ≤ 2", ours("another URL in a storm", "p99 ÷ unloaded"), atMost: 2)
        goal("idle connection ≤ 700 bytes", ours("idle connections", "bytes each"), atMost: 700)
        goal("stored object ≤ 300 bytes over head and payload", ours("stored objects", "bytes over head and payload"), atMost: 300)
        goal("two workers ÷ one ≥ 1.8, by CPU", ours("two workers", "times one, by CPU"), atLeast: 1.8)
        goal("the same, pipelined", ours("two workers, 16 pipelined", "times one, by CPU"), atLeast: 1.8)
        goal("start to first answer ≤ 30 ms", ours("start", "ms to first answer"), atMost: 30)
        return text
    }
}
