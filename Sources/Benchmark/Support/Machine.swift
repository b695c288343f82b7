import Foundation

/// Where and when the figures were taken.
enum Machine {
    static func description(_ plan: Plan) -> String {
        let processor = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?
            .split(separator: "\n").first { $0.hasPrefix("model name") }?.split(separator: ":").last ?? " unknown"
        let load = (try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8))?.split(separator: " ").prefix(2)
            .joined(separator: ", ") ?? "?"
        let versions = Kind.allCases.map { "\($0 == .bare ? "kernel" : $0.name): \(Peer.version($0, plan))" }
        return """
            Taken \(DateText.day) on\(processor), \(ProcessInfo.processInfo.processorCount) cores; servers on core 0, load and \
            origin on core 1; medians of \(plan.repeats) runs of \(Int(plan.seconds)) s. Load average of the machine at the end: \(load) \
            (about 2 is the benchmark itself; more means others disturbed it).

            \(versions.map { "- \($0)" }.joined(separator: "\n"))

            """
    }
}

/// A Markdown file with parts that are written by the benchmarks.
enum Document {
    /// Replaces what stands between `<!-- NAME -->` and `<!-- end of NAME -->`, or appends it.
    static func put(_ text: String, between name: String, in file: String) throws {
        let (start, end) = ("<!-- \(name) -->", "<!-- end of \(name) -->")
        var document = (try? String(contentsOfFile: file, encoding: .utf8)) ?? "# Benchmarks\n"
        let part = "\(start)\n\(text)\n\(end)"
        if let from = document.range(of: start), let to = document.range(of: end), from.lowerBound < to.lowerBound {
            document.replaceSubrange(from.lowerBound..<to.upperBound, with: part)
        } else {
            document += "\n\(part)\n"
        }
        try document.write(toFile: file, atomically: true, encoding: .utf8)
    }
}
