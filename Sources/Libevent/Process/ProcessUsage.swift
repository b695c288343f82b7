import CLibevent
import Glibc

/// This process's use of the machine. A figure is 0 if the system does not report it.
public struct ProcessUsage: Sendable {
    /// Nanoseconds of processor time, in user mode and in the kernel, of all threads since the start.
    public var processorTime: UInt64 = 0
    /// Resident memory in bytes.
    public var residentBytes = 0
    public var openDescriptors = 0
    /// The limit of open descriptors.
    public var descriptorLimit = 0

    /// Takes the present figures. Reads `/proc`: call this for a scrape, not for a request.
    public init() {
        var usage = rusage()
        if unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 {
            processorTime = usage.ru_utime.nanoseconds + usage.ru_stime.nanoseconds
        }
        // The first two numbers: pages of the whole program, and resident pages.
        let pages = (KernelFile.text(of: "/proc/self/statm") ?? "").split(separator: " ")
        if pages.count > 1, let resident = Int(pages[1]) { residentBytes = resident * sysconf(Int32(_SC_PAGESIZE)) }
        openDescriptors = Self.countDescriptors()
        var limit = rlimit()
        if unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            descriptorLimit = Int(clamping: limit.rlim_cur)
        }
    }

    /// Nanoseconds of processor time of the calling thread, in user mode and in the kernel, since the thread began.
    public static var processorTimeOfThisThread: UInt64 {
        var time = timespec()
        guard unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0 else { return 0 }
        return UInt64(clamping: time.tv_sec) * 1_000_000_000 + UInt64(clamping: time.tv_nsec)
    }

    /// Since Linux 6.2 the folder's size is the number of descriptors; before that the folder has to be read.
    private static func countDescriptors() -> Int {
        let path = "/proc/self/fd"
        var status = stat()
        if unsafe stat(path, &status) == 0, status.st_size > 0 { return Int(status.st_size) }
        // The stream is valid until `closedir`; the entries are only counted.
        guard let folder = unsafe opendir(path) else { return 0 }
        defer { unsafe closedir(folder) }
        // Do not count `.`, `..` and the descriptor of the folder itself.
        var count = -3
        while unsafe readdir(folder) != nil { count += 1 }
        return max(0, count)
    }
}

extension timeval {
    fileprivate var nanoseconds: UInt64 { UInt64(clamping: tv_sec) * 1_000_000_000 + UInt64(clamping: tv_usec) * 1000 }
}

/// The effective user and group of this program, which decide about its permissions: `uid 998, gid 998`. Numbers, since
/// looking up their names may need the network.
public func ownUser() -> String { "uid \(geteuid()), gid \(getegid())" }
