import Foundation

/// Runs other programs to their end.
enum Shell {
    /// The standard output and standard error of `words`, or nil if there is no such program.
    static func output(_ words: [String]) -> String? {
        let file = NSTemporaryDirectory() + "coalesced-bench-\(getpid()).output"
        defer { try? FileManager.default.removeItem(atPath: file) }
        guard let child = try? Child(words, output: file), child.wait(seconds: 120) else { return nil }
        return try? String(contentsOfFile: file, encoding: .utf8)
    }

    static func has(_ program: String) -> Bool {
        ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/usr/local/sbin"].contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/\(program)")
        }
    }
}

extension Double {
    /// The number with three significant digits, and no more than are needed.
    var short: String {
        let size = abs(self)
        if size >= 100 || self == 0 { return String(format: "%.0f", self) }
        return String(format: size >= 10 ? "%.1f" : "%.2f", self)
    }
}

extension [Double] {
    /// The middle number; of an even count, the mean of the middle two. NaN if empty.
    var median: Double {
        guard !isEmpty else { return .nan }
        let sorted = sorted()
        return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2
    }

    /// The minimum and the maximum: `3.10–3.42`.
    var spread: String {
        guard let least = self.min(), let most = self.max() else { return "" }
        return "\(least.short)–\(most.short)"
    }

    func percentile(_ percent: Double) -> Double {
        guard !isEmpty else { return .nan }
        return sorted()[Swift.min(count - 1, Int(Double(count) * percent / 100))]
    }
}

/// The reason why no measurement is taken.
struct Problem: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Prints a line at once, to a terminal as to a file or pipe.
func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }
