import CLibevent
import Glibc

/// Raises the soft limit of open descriptors to the hard limit and gives the limit that now holds.
/// - Throws: where the system refuses; the limit is what it was.
@discardableResult
public func raiseFileDescriptorLimit() throws(SystemError) -> Int {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
        throw .last(.setDescriptorLimit)
    }
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max
        guard unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw .last(.setDescriptorLimit)
        }
    }
    return Int(clamping: limit.rlim_cur)
}

/// Has the kernel make room in the program's table of descriptors for `count` of them, once and beforehand.
///
/// The table doubles when a descriptor does not fit, from 64 on. In a program of several threads the kernel first waits
/// until no processor can still be reading the old table (`expand_fdtable` in Linux' fs/file.c): the loop that accepts the
/// 256th, 512th, … connection would stand still for 5 to 25 ms each time.
/// - Returns: whether there is room now; `false` where the limit of open descriptors is lower, or memory is short.
@discardableResult
public func growDescriptorTable(to count: Int) -> Bool {
    guard count > 0, let last = Int32(exactly: count - 1) else { return false }
    // Any descriptor will do that can be duplicated: this one needs no file system.
    let original = eventfd(0, Int32(EFD_CLOEXEC))
    guard original >= 0 else { return false }
    defer { close(original) }
    // The lowest free number from `last` on. The table stays as large when it is closed.
    let highest = fcntl(original, F_DUPFD_CLOEXEC, last)
    guard highest >= 0 else { return false }
    close(highest)
    return true
}
