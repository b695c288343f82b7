import Foundation
import Storage

/// Hit ratios of coalesced's eviction code and of other policies on generated traces. The same on every machine.
enum Simulation {
    struct Ratio {
        var requests = 0.0
        var bytes = 0.0
    }

    static func run(_ trace: Trace, _ policy: some Policy, sizes: [Int]) -> Ratio {
        var policy = policy
        var (hits, hitBytes, bytes) = (0, 0, 0)
        for (number, object) in trace.requests.enumerated() {
            let size = sizes[number]
            bytes += size
            if policy.request(object, size: size, waiters: trace.waiters[number] ?? 0, at: number) {
                hits += 1
                hitBytes += size
            }
        }
        return Ratio(
            requests: Double(hits) / Double(trace.requests.count), bytes: Double(hitBytes) / Double(max(1, bytes)))
    }

    static let smallPercents = [1, 5, 10, 20, 40]
    private static let standard = StorageSettings().smallQueuePercent

    /// - Returns: all ratios, and the table of `docs/benchmarks.md`: the usual cache sizes and the product's share of the
    ///   small queue, by requests.
    static func report(isQuick: Bool) -> (everything: String, summary: String) {
        let count = isQuick ? 200_000 : 500_000
        let objects = count / 10
        let traces = [
            Trace.zipf(count, objects: objects, exponent: 0.7, seed: 1),
            Trace.zipf(count, objects: objects, exponent: 0.9, seed: 2),
            Trace.zipf(count, objects: objects, exponent: 1.1, seed: 3),
            Trace.scans(count, objects: objects, seed: 4),
            Trace.pairs(count, objects: objects, seed: 9),
            Trace.loop(count, objects: objects),
            Trace.mixed(count, objects: objects, seed: 5),
            Trace.news(count, seed: 6),
        ]
        var text =
            "\(count) requests each. The cache holds 0.2, 1, 10 and 50 % of the bytes of all objects of a trace (0.2 %: about as much as one of the 64 shards of a store of 64 MiB). Hit ratio in % by requests "
            + "/ by bytes. `S3-FIFO n` is the product's code with n % for the small queue.\n\n"
        text +=
            "| trace | cache | FIFO | LRU | " + smallPercents.map { "S3-FIFO \($0)" }.joined(separator: " | ")
            + " | \(standard), waiters not counted | offline, by requests | offline, by bytes |\n"
        text += "| --- |" + String(repeating: " ---: |", count: smallPercents.count + 6) + "\n"
        var summary =
            "\(count) requests each. The cache holds 1 or 10 % of the bytes of all objects of a trace. Hit ratio in % by requests; `S3-FIFO` is the product's code with its default, a small queue of \(standard) %. "
            + "`Benchmark simulate` prints more sizes, shares and ratios by bytes.\n\n"
            + "| trace | cache | FIFO | LRU | S3-FIFO | waiters not counted | offline, by requests |\n"
            + "| --- |" + String(repeating: " ---: |", count: 6) + "\n"
        for trace in traces {
            let sizes = trace.requests.map(Trace.size)
            var known: [Int: Int] = [:]
            for (object, size) in zip(trace.requests, sizes) { known[object] = size }
            let total = known.values.reduce(0, +)
            for percent in [0.2, 1, 10, 50] {
                let capacity = Int(Double(total) / 100 * percent)
                var ratios = [
                    run(trace, Recency(capacity: capacity, movesOnUse: false), sizes: sizes),
                    run(trace, Recency(capacity: capacity, movesOnUse: true), sizes: sizes),
                ]
                for small in smallPercents {
                    ratios.append(run(trace, RealS3FIFO(capacity: capacity, smallPercent: small), sizes: sizes))
                }
                ratios.append(
                    run(
                        trace, RealS3FIFO(capacity: capacity, smallPercent: standard, countsWaiters: false),
                        sizes: sizes))
                for bySize in [true, false] {
                    ratios.append(
                        run(trace, Offline(capacity: capacity, trace: trace.requests, bySize: bySize), sizes: sizes))
                }
                let cells = ratios.map { String(format: "%.1f / %.1f", $0.requests * 100, $0.bytes * 100) }
                text += "| \(trace.name) | \(percent.formatted()) % | \(cells.joined(separator: " | ")) |\n"
                guard percent == 1 || percent == 10 else { continue }
                // FIFO, LRU, the default share; then, after all shares, the one without waiters and the offline policy.
                let product = 2 + (smallPercents.firstIndex(of: standard) ?? 0), rest = 2 + smallPercents.count
                let usual = [0, 1, product, rest, rest + 1].map {
                    String(format: "%.1f", ratios[$0].requests * 100)
                }
                summary += "| \(trace.name) | \(percent.formatted()) % | \(usual.joined(separator: " | ")) |\n"
            }
        }
        return (text, summary)
    }
}
