import CLibevent
import Glibc

/// The number of processors that this process may keep busy: the processors on which it may run or, if that is less,
/// the quota of a control group, rounded up. At least one. Reads files.
public func processorCount() -> Int {
    processorCount(
        allowed: allowedProcessors() ?? sysconf(Int32(_SC_NPROCESSORS_ONLN)), quota: ControlGroups().processorQuota)
}

func processorCount(allowed: Int, quota: Double?) -> Int {
    guard let quota, quota < Double(allowed) else { return max(1, allowed) }
    return max(1, Int(quota.rounded(.up)))
}

/// The number of processors on which the calling thread may run (sched_setaffinity(2)); `nil` if the system does not
/// tell.
private func allowedProcessors() -> Int? {
    // The kernel refuses a mask without room for all possible processors.
    for size in [128, 1024, 8192] {
        var mask = [UInt8](repeating: 0, count: size)
        // The call writes no more than `size` bytes and returns how many it wrote.
        let count = unsafe coalesced_affinity(&mask, size)
        if count >= 0 { return mask.prefix(count).reduce(0) { $0 + $1.nonzeroBitCount } }
    }
    return nil
}
