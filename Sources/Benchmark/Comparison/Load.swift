import Foundation
import Synchronization

/// One run of wrk against one program, and what the program spent on it.
struct Load {
    var path: String
    var connections = 64
    /// Lua that shapes the requests; `NUMBER` stands for a number no other run gets.
    var script = ""

    struct Result {
        var requests = 0.0
        var perSecond = 0.0
        /// Microseconds.
        var p50 = 0.0, p99 = 0.0, p999 = 0.0
        /// Microseconds a request.
        var cpu = ProcessTree.CPU()
        /// Connections that broke, and answers that were not 2xx or 3xx.
        var errors = 0.0
        var wrongStatus = 0.0
    }

    private static let runs = Atomic<Int>(0)

    private static let told = """

        done = function(summary, latency, requests)
          local e = summary.errors
          io.write(string.format("\\nTOLD %d %d %d %d %d %d %d\\n", summary.requests, summary.duration,
            latency:percentile(50), latency:percentile(99), latency:percentile(99.9),
            e.connect + e.read + e.write + e.timeout, e.status))
        end

        """

    /// - Returns: nil when wrk could not be run.
    func run(against program: Program, seconds: Int, plan: Plan, during: () -> Void = {}) -> Result? {
        let number = Self.runs.add(1, ordering: .relaxed).newValue
        let file = "\(plan.folder)/wrk-\(number).lua"
        try? (script.replacingOccurrences(of: "NUMBER", with: "\(number)") + Self.told)
            .write(toFile: file, atomically: false, encoding: .utf8)
        let before = program.tree.cpu
        let wrk = try? Child(
            [
                "setpriv", "--pdeathsig", "TERM", "taskset", "-c", "1", "wrk", "-t1", "-c\(connections)", "-d\(seconds)s", "--timeout", "10s", "-s", file,
                "http://127.0.0.1:\(program.port)\(path)",
            ], output: "\(file).output")
        during()
        guard let wrk, wrk.wait(seconds: seconds + 15) else { return nil }
        let spent = program.tree.cpu - before
        let text = (try? String(contentsOfFile: "\(file).output", encoding: .utf8)) ?? ""
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("TOLD") }) else { return nil }
        let numbers = line.split(separator: " ").dropFirst().compactMap { Double($0) }
        guard numbers.count == 7, numbers[0] > 0 else { return nil }
        return Result(
            requests: numbers[0], perSecond: numbers[0] / numbers[1] * 1e6, p50: numbers[2], p99: numbers[3], p999: numbers[4],
            cpu: ProcessTree.CPU(user: spent.user / numbers[0], system: spent.system / numbers[0]), errors: numbers[5],
            wrongStatus: numbers[6])
    }
}
