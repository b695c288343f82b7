import CLibevent
import Glibc

/// Raises the soft limit of open descriptors to the hard limit and returns the limit that now holds.
/// - Throws: if the system refuses; the limit is then unchanged.
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

/// Lets the kernel make room for `count` descriptors in the program's descriptor table, once and in advance.
///
/// The table doubles, from 64 on, when a descriptor does not fit. If the program has several threads, the kernel first
/// waits until no processor can still be reading the old table (`expand_fdtable` in Linux' fs/file.c). Without this
/// function, the loop that accepts the 256th, 512th, … connection would stand still for 5 to 25 ms each time.
/// - Returns: whether there is room now; `false` if the limit of open descriptors is lower, or memory is short.
@discardableResult
public func growDescriptorTable(to count: Int) -> Bool {
    guard count > 0, let last = Int32(exactly: count - 1) else { return false }
    // Any descriptor that can be duplicated will do; an eventfd needs no file system.
    let original = eventfd(0, Int32(EFD_CLOEXEC))
    guard original >= 0 else { return false }
    defer { close(original) }
    // Duplicate to the lowest free number from `last` on. Closing the duplicate does not shrink the table.
    let highest = fcntl(original, F_DUPFD_CLOEXEC, last)
    guard highest >= 0 else { return false }
    close(highest)
    return true
}
