import Foundation

/// Where and when the figures were taken.
enum Machine {
    /// What all have used of the processors since the machine started, and what of it we did; hundredths of a second.
    struct Use {
        /// Busy, and held back by the host from what wanted to run.
        private var busy = 0.0, stolen = 0.0, all = 0.0
        /// This process and those of its children that have ended.
        private var own = 0.0

        /// Reads the use as it is now.
        init() {
            // user, nice, system, idle, iowait, irq, softirq, steal (proc(5)); some of the guests' time stands in user
            // already.
            let line = (try? String(contentsOfFile: "/proc/stat", encoding: .utf8))?.prefix { $0 != "\n" } ?? ""
            let times = line.split(separator: " ").dropFirst().prefix(8).map { Double($0) ?? 0 }
            guard times.count == 8 else { return }
            all = times.reduce(0, +)
            stolen = times[7]
            busy = all - times[3] - times[4] - stolen
            own = Double(System.processTime + System.childrenTime) / 1e7
        }

        /// What was used from then until now, in words.
        func text(until now: Use) -> String {
            let whole = max(1, now.all - all)
            let others = max(0, (now.busy - busy) - (now.own - own))
            return
                "Other programs used \((100 * others / whole).short) % of the processors meanwhile, and the machine's host withheld "
                + "\((100 * (now.stolen - stolen) / whole).short) %."
        }
    }

    /// For tables that are the same on every machine.
    static var stamp: String { "Counted \(DateText.day)\(Peer.commit).\n\n" }

    static func description(_ plan: Plan, use: String) -> String {
        let processor =
            (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?
            .split(separator: "\n").first { $0.hasPrefix("model name") }?.split(separator: ":").last ?? " unknown"
        let versions = Kind.allCases.map { "\($0 == .bare ? "kernel" : $0.name): \(Peer.version($0, plan))" }
        return """
            Taken \(DateText.day) on\(processor), \(ProcessInfo.processInfo.processorCount) cores; servers on core 0, load and \
            origin on core 1; medians of \(plan.repeats) runs of \(plan.seconds.short) s. \(use)

            \(versions.map { "- \($0)" }.joined(separator: "\n"))

            """
    }
}

/// A Markdown file with parts that are written by the benchmarks.
enum Document {
    /// - Throws: where `file` cannot be written: to be asked before what takes minutes.
    static func check(_ file: String) throws {
        let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
        let place = FileManager.default.fileExists(atPath: file) ? file : folder
        guard FileManager.default.isWritableFile(atPath: place) else {
            throw Problem("\(file) cannot be written")
        }
    }

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
