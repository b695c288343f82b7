import Foundation

/// The resources that the kernel charges to a program: to its process and all its descendants.
struct ProcessTree {
    let root: Int32

    /// In microseconds. The total is exact to the nanosecond. Its division into user and system time is known to a
    /// hundredth of a second, the tick of `/proc/PID/stat`.
    struct CPU {
        var total = 0.0
        fileprivate var userTicks = 0.0
        fileprivate var systemTicks = 0.0

        /// 0 if no tick fell.
        var user: Double { userTicks > 0 ? total * userTicks / (userTicks + systemTicks) : 0 }
        var system: Double { systemTicks > 0 ? total * systemTicks / (userTicks + systemTicks) : 0 }

        static func - (left: CPU, right: CPU) -> CPU {
            CPU(
                total: left.total - right.total, userTicks: left.userTicks - right.userTicks,
                systemTicks: left.systemTicks - right.systemTicks)
        }
        static func / (spent: CPU, count: Double) -> CPU {
            CPU(total: spent.total / count, userTicks: spent.userTicks / count, systemTicks: spent.systemTicks / count)
        }
    }

    private var processes: [Int32] {
        var children: [Int32: [Int32]] = [:]
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
            guard let process = Int32(name), let fields = Self.stat(process), let parent = Int32(fields[1]) else {
                continue
            }
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
            let end = text.lastIndex(of: ")")
        else { return nil }
        return text[text.index(after: end)...].split(separator: " ")
    }

    /// User and system time so far, of living and ended threads.
    var cpu: CPU {
        var sum = CPU()
        for process in processes {
            guard let time = System.processTime(of: process), let fields = Self.stat(process), fields.count > 12 else {
                continue
            }
            sum.total += Double(time) / 1000
            sum.userTicks += Double(fields[11]) ?? 0
            sum.systemTicks += Double(fields[12]) ?? 0
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

    /// Bytes in memory now, and the maximum since `forgetPeak`.
    var resident: Int { memory("VmRSS:") }
    var peak: Int { memory("VmHWM:") }

    func forgetPeak() {
        for process in processes {
            try? "5".write(toFile: "/proc/\(process)/clear_refs", atomically: false, encoding: .utf8)
        }
    }
}
