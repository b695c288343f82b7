import CArguments
import CLibevent
import Glibc

/// Settings of the C library's `malloc`. A C library other than glibc ignores them, without harm.
public enum Allocator {
    /// Lets `malloc` keep up to 1 MiB of freed memory at the end of each of its heaps (every thread has one). By
    /// default `malloc` returns the memory beyond 128 KiB to the kernel; the kernel would then map, fault in and zero
    /// the pieces of every body again, page by page.
    ///
    /// Call this before threads exist. A block larger than 1 MiB is mapped separately and returned at once.
    public static func keepFreedMemory() {
        // Set both: setting only one would stop glibc from adapting the other.
        _ = mallopt(M_TRIM_THRESHOLD, 1 << 20)
        _ = mallopt(M_MMAP_THRESHOLD, 1 << 20)
    }

    /// The environment variable that glibc reads when a program is loaded, and the setting in it.
    private static let (variable, setting, count) = ("GLIBC_TUNABLES", "glibc.malloc.tcache_count", 256)
    private static let mark = "COALESCED_LOADED_ANEW"

    /// Lets each thread cache 256 freed blocks of each size instead of seven. Blocks that one iteration of a loop
    /// allocates for some dozens of requests and frees again are then reused without a lock, and without being merged
    /// with their neighbours and split again. The cache holds blocks of up to 1 KiB. Its worst case is about 8 MiB per
    /// thread, when blocks of all sizes are freed by the hundred.
    ///
    /// glibc reads this setting only from the environment, before `main`. So this function executes the program once
    /// more, in the same process, with the variable set, which takes about 5 ms. A setting that the variable already
    /// has is kept. Call this function first, before the program opens, reads or starts anything. It returns only if
    /// there is nothing to do or if executing fails.
    public static func keepFreedBlocks() {
        let before = unsafe getenv(variable).map { unsafe String(cString: $0) } ?? ""
        // Execute only once. glibc removes `variable` if the file gives the program more rights than its user has, as
        // for low ports.
        guard !before.contains(setting), unsafe getenv(mark) == nil, unsafe setenv(mark, "1", 1) == 0 else { return }
        // Execute the real path, not `/proc/self/exe`: the process would be called `exe`.
        var path = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        let length = unsafe readlink("/proc/self/exe", &path, Int(PATH_MAX))
        guard length > 0, let arguments = unsafe coalesced_arguments() else { return }
        // If the program was started through the loader by name, the link leads to the loader; do not execute the
        // loader.
        let name =
            String(decoding: path[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self).split(separator: "/").last
            ?? ""
        guard !name.hasPrefix("ld-"), !name.hasPrefix("ld.") else { return }
        let all = (before.isEmpty ? "" : before + ":") + "\(setting)=\(count)"
        guard unsafe setenv(variable, all, 1) == 0 else { return }
        // `execv` returns only on failure. Swift's arguments may be lost (`ProgramArguments`), so they are not used:
        // executed without arguments, the program would run `serve` without options.
        _ = unsafe execv(path, arguments)
    }
}
