import Foundation

/// What the kernel accounts to a program: its process and all that descend from it.
struct ProcessTree {
    let root: Int32

    struct CPU {
        /// Microseconds.
        var user = 0.0
        var system = 0.0
        var total: Double { user + system }
        static func - (left: CPU, right: CPU) -> CPU { CPU(user: left.user - right.user, system: left.system - right.system) }
    }

    private var processes: [Int32] {
        var children: [Int32: [Int32]] = [:]
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
            guard let process = Int32(name), let fields = Self.stat(process), let parent = Int32(fields[1]) else { continue }
            children[parent, default: []].append(process)
        }
        var found = [root]
        var next = 0
        while next < found.count {
            found += children[found[next]] ?? []
            next += 1
        }
        return found
    }

    /// Fields of `/proc/PID/stat` from the state on, which is the third (proc(5)).
    private static func stat(_ process: Int32) -> [Substring]? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
              let end = text.lastIndex(of: ")") else { return nil }
        return text[text.index(after: end)...].split(separator: " ")
    }

    /// User and system time so far, of living and ended threads; the clock ticks a hundred times a second.
    var cpu: CPU {
        var sum = CPU()
        for process in processes {
            guard let fields = Self.stat(process), fields.count > 12 else { continue }
            sum.user += (Double(fields[11]) ?? 0) * 10_000
            sum.system += (Double(fields[12]) ?? 0) * 10_000
        }
        return sum
    }

    private func memory(_ name: String) -> Int {
        processes.reduce(0) { sum, process in
            let text = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
            let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
            return sum + (line?.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) } ?? 0) * 1024
        }
    }

    /// Bytes in memory now, and the most since `forgetPeak`.
    var resident: Int { memory("VmRSS:") }
    var peak: Int { memory("VmHWM:") }

    func forgetPeak() {
        for process in processes { try? "5".write(toFile: "/proc/\(process)/clear_refs", atomically: false, encoding: .utf8) }
    }
}
