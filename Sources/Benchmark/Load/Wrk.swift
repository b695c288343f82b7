import Foundation

/// wrk as the load: an independent measurement of the same rows. wrk reads every byte of a body, and sleeps whenever it
/// has no work, so that the server's `send` has to wake it.
struct Wrk {
    var path: String
    var connections = 64

    static var isInstalled: Bool { Shell.has("wrk") }

    /// Blocks until wrk has ended.
    ///
    /// - Returns: nil if no response came.
    func run(against program: Program, seconds: Double) -> Load.Result? {
        let children = System.childrenTime
        let before = program.tree.cpu
        let told = Shell.output([
            "wrk", "--threads", "1", "--connections", "\(connections)", "--duration",
            "\(max(1, Int(seconds)))s", "--latency", "http://127.0.0.1:\(program.port)\(path)",
        ])
        let spent = program.tree.cpu - before
        guard let told, let answers = Told(told) else { return nil }
        let microseconds = answers.seconds * 1e6
        return Load.Result(
            requests: answers.requests, perSecond: answers.perSecond, p50: answers.p50, p99: answers.p99, p999: .nan,
            cpu: spent / answers.requests, errors: answers.errors, wrong: answers.wrong,
            serverBusy: min(100, 100 * spent.total / microseconds),
            loadBusy: min(100, 100 * Double(System.childrenTime - children) / 1000 / microseconds))
    }

    /// The output of wrk at its end.
    private struct Told {
        var requests = 0.0, seconds = 0.0, perSecond = 0.0
        /// In microseconds.
        var p50 = Double.nan, p99 = Double.nan
        /// Sockets that failed or responses that took longer than two seconds; and responses other than 2xx and 3xx.
        var errors = 0.0, wrong = 0.0

        init?(_ text: String) {
            for line in text.split(separator: "\n") {
                let words = line.split(whereSeparator: { $0 == " " || $0 == "," })
                if words.count > 4, words[1] == "requests", words[2] == "in" {
                    requests = Double(words[0]) ?? 0
                    seconds = (Self.microseconds(words[3]) ?? 0) / 1e6
                } else if words.first == "Requests/sec:" {
                    perSecond = words.last.flatMap { Double($0) } ?? 0
                } else if words.first == "50%" {
                    p50 = words.last.flatMap(Self.microseconds) ?? .nan
                } else if words.first == "99%" {
                    p99 = words.last.flatMap(Self.microseconds) ?? .nan
                } else if words.first == "Socket" {
                    errors = words.compactMap { Double($0) }.reduce(0, +)
                } else if words.first == "Non-2xx" {
                    wrong = words.last.flatMap { Double($0) } ?? 0
                }
            }
            guard requests > 0, seconds > 0 else { return nil }
        }

        /// Reads `812.00us`, `7.40ms`, `2.00s`, `1.02m`.
        private static func microseconds(_ text: Substring) -> Double? {
            for (unit, size) in [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 6e7)] where text.hasSuffix(unit) {
                return Double(text.dropLast(unit.count)).map { $0 * size }
            }
            return nil
        }
    }
}
