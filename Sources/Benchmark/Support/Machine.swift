import Foundation

/// The machine and the time of the measurements.
enum Machine {
    /// The processor time that all programs have used since the machine started, and the part of it that the benchmarks
    /// have used, in hundredths of a second.
    struct Use {
        /// Busy time, time that the host withheld from programs that wanted to run, and all time.
        private var busy = 0.0, stolen = 0.0, all = 0.0
        /// The time of this process, and of its children that have ended.
        private var own = 0.0

        /// Reads the present use.
        init() {
            // user, nice, system, idle, iowait, irq, softirq, steal (proc(5)). The columns after these are left out,
            // since user contains some of the guests' time already.
            let line = (try? String(contentsOfFile: "/proc/stat", encoding: .utf8))?.prefix { $0 != "\n" } ?? ""
            let times = line.split(separator: " ").dropFirst().prefix(8).map { Double($0) ?? 0 }
            guard times.count == 8 else { return }
            all = times.reduce(0, +)
            stolen = times[7]
            busy = all - times[3] - times[4] - stolen
            own = Double(System.processTime + System.childrenTime) / 1e7
        }

        /// The use from this one until `now`, in words.
        func text(until now: Use) -> String {
            let whole = max(1, now.all - all)
            let others = max(0, (now.busy - busy) - (now.own - own))
            return
                "Other programs used \((100 * others / whole).short) % of the processors meanwhile, and the machine's host withheld "
                + "\((100 * (now.stolen - stolen) / whole).short) %."
        }
    }

    /// The heading of tables that are the same on every machine.
    static var stamp: String { "Counted \(DateText.day)\(Peer.commit).\n\n" }

    static func description(_ plan: Plan, use: String) -> String {
        let versions = Kind.allCases.map { "\($0 == .bare ? "kernel" : $0.name): \(Peer.version($0, plan))" }
        return description("medians of \(plan.repeats) runs of \(plan.seconds.short) s", versions, use: use)
    }

    /// - Parameter runs: how many there were, and how long.
    static func description(_ runs: String, _ versions: [String], use: String) -> String {
        let processor =
            (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?
            .split(separator: "\n").first { $0.hasPrefix("model name") }?.split(separator: ":").last ?? " unknown"
        return """
            Taken \(DateText.day) on\(processor), \(ProcessInfo.processInfo.processorCount) cores; servers on core 0, load and \
            origin on core 1; \(runs). \(use)

            \(versions.map { "- \($0)" }.joined(separator: "\n"))

            """
    }
}

/// A Markdown file with parts that are written by the benchmarks.
enum Document {
    /// - Throws: if `file` cannot be written. Call this before measurements that take minutes.
    static func check(_ file: String) throws {
        let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
        let place = FileManager.default.fileExists(atPath: file) ? file : folder
        guard FileManager.default.isWritableFile(atPath: place) else {
            throw Problem("\(file) cannot be written")
        }
    }

    /// Replaces the text between `<!-- NAME -->` and `<!-- end of NAME -->`, or appends it.
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
