internal import CLibevent
internal import Glibc

/// What this program asks of the C library's `malloc`. Another library than glibc ignores it all, and nothing is lost.
public enum Allocator {
    /// Lets `malloc` keep up to 1 MiB of freed memory at the end of each of its heaps, of which every thread has one. By itself it gives back to
    /// the kernel what exceeds 128 KiB, and then a body that passes through has its pieces mapped, faulted in and zeroed anew, page by page.
    ///
    /// To be called before there are threads. What is larger is mapped by itself and goes back at once.
    public static func keepFreedMemory() {
        // One without the other would keep the first from adapting.
        _ = mallopt(M_TRIM_THRESHOLD, 1 << 20)
        _ = mallopt(M_MMAP_THRESHOLD, 1 << 20)
    }

    /// The variable that glibc reads when a program is loaded, and what is said in it.
    private static let (variable, setting, count) = ("GLIBC_TUNABLES", "glibc.malloc.tcache_count", 256)
    private static let mark = "COALESCED_LOADED_ANEW"

    /// Lets each thread keep 256 freed blocks of a size at hand, rather than seven: then what a loop's iteration makes for some dozens of requests
    /// and frees again in the same order goes back and forth without a lock, and without being merged with its neighbours and cut apart
    /// anew. Blocks of up to 1 KiB; at the very most some 8 MiB a thread, were all sizes freed by the hundred.
    ///
    /// glibc takes this from the environment alone, before `main`. So the program is loaded once more, in the same process, with the variable
    /// set: some 5 ms. Where the variable has the setting already, that holds. To be called first of all, before anything is open,
    /// read or begun. Returns when there is nothing to do, or when it cannot be done.
    public static func keepFreedBlocks() {
        let before = unsafe getenv(variable).map { unsafe String(cString: $0) } ?? ""
        // Once: where the file gives the program more rights than its user has, as for low ports, glibc takes the first variable away.
        guard !before.contains(setting), unsafe getenv(mark) == nil, unsafe setenv(mark, "1", 1) == 0 else { return }
        // Not by way of `/proc/self/exe`: the process would be called `exe`.
        var path = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        let length = unsafe readlink("/proc/self/exe", &path, Int(PATH_MAX))
        guard length > 0 else { return }
        // Where the loader was called by name to load us, it is the loader that would be executed.
        let name = String(decoding: path[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self).split(separator: "/").last ?? ""
        guard !name.hasPrefix("ld-"), !name.hasPrefix("ld.") else { return }
        let all = (before.isEmpty ? "" : before + ":") + "\(setting)=\(count)"
        guard unsafe setenv(variable, all, 1) == 0 else { return }
        // Only fails, or does not return.
        _ = unsafe execv(path, CommandLine.unsafeArgv)
    }
}
