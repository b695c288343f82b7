import CArguments
import CLibevent
import Glibc

/// What this program asks of the C library's `malloc`. A library other than glibc ignores it, and nothing is lost.
public enum Allocator {
    /// Lets `malloc` keep up to 1 MiB of freed memory at the end of each of its heaps, of which every thread has one.
    /// By default it returns what exceeds 128 KiB to the kernel, and then the pieces of every body that passes through
    /// are mapped, faulted in and zeroed again, page by page.
    ///
    /// To be called before there are threads. A block larger than that is mapped separately and returned at once.
    public static func keepFreedMemory() {
        // One without the other would keep the first from adapting.
        _ = mallopt(M_TRIM_THRESHOLD, 1 << 20)
        _ = mallopt(M_MMAP_THRESHOLD, 1 << 20)
    }

    /// The variable that glibc reads when a program is loaded, and the setting in it.
    private static let (variable, setting, count) = ("GLIBC_TUNABLES", "glibc.malloc.tcache_count", 256)
    private static let mark = "COALESCED_LOADED_ANEW"

    /// Lets each thread keep 256 freed blocks of each size at hand, rather than seven: then what a loop's iteration
    /// allocates for some dozens of requests and frees again is reused without a lock, and without being merged with
    /// its neighbours and split again. Blocks of up to 1 KiB; at the very most some 8 MiB per thread, if all sizes were
    /// freed by the hundred.
    ///
    /// glibc takes this only from the environment, before `main`. So the program is executed once more, in the same
    /// process, with the variable set: some 5 ms. If the variable has the setting already, it is kept. To be called
    /// first of all, before anything is opened, read or started. Returns if there is nothing to do, or if it cannot be
    /// done.
    public static func keepFreedBlocks() {
        let before = unsafe getenv(variable).map { unsafe String(cString: $0) } ?? ""
        // Only once: if the file gives the program more rights than its user has, as for low ports, glibc removes the
        // first variable.
        guard !before.contains(setting), unsafe getenv(mark) == nil, unsafe setenv(mark, "1", 1) == 0 else { return }
        // Not by way of `/proc/self/exe`: the process would be called `exe`.
        var path = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        let length = unsafe readlink("/proc/self/exe", &path, Int(PATH_MAX))
        guard length > 0, let arguments = unsafe coalesced_arguments() else { return }
        // If the loader was called by name to load us, the loader would be executed.
        let name =
            String(decoding: path[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self).split(separator: "/").last
            ?? ""
        guard !name.hasPrefix("ld-"), !name.hasPrefix("ld.") else { return }
        let all = (before.isEmpty ? "" : before + ":") + "\(setting)=\(count)"
        guard unsafe setenv(variable, all, 1) == 0 else { return }
        // Only fails, or does not return. Not with Swift's arguments, which may be lost (`ProgramArguments`): executed without
        // any, the program would be `serve` without options.
        _ = unsafe execv(path, arguments)
    }
}
