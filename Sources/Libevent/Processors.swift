import CLibevent
import Glibc

/// How many processors this process may keep busy: those on which it may run, or fewer if the quota of a control group
/// gives it less of their time, which is rounded up. At least one. Reads files.
public func processorCount() -> Int {
    processorCount(
        allowed: allowedProcessors() ?? sysconf(Int32(_SC_NPROCESSORS_ONLN)), quota: ControlGroups().processorQuota)
}

func processorCount(allowed: Int, quota: Double?) -> Int {
    guard let quota, quota < Double(allowed) else { return max(1, allowed) }
    return max(1, Int(quota.rounded(.up)))
}

/// How many processors the calling thread may run on (sched_setaffinity(2)); `nil`: the system does not tell.
private func allowedProcessors() -> Int? {
    // The kernel refuses a mask that has not room for all the processors there could be.
    for size in [128, 1024, 8192] {
        var mask = [UInt8](repeating: 0, count: size)
        // It writes no more than there is room for, and tells how much that was.
        let count = unsafe coalesced_affinity(&mask, size)
        if count >= 0 { return mask.prefix(count).reduce(0) { $0 + $1.nonzeroBitCount } }
    }
    return nil
}
