import CLibevent
import Glibc

/// The path of the program's file, by which a later version of it is found.
public enum ProgramPath {
    /// The path by which this program was started. Call this at the start, and before the working directory changes.
    ///
    /// It is the path as it was named, not that of the file behind a symbolic link, since an upgrade may change the link;
    /// and not `/proc/self/exe`, which an upgrade leaves at the replaced file.
    /// - Returns: `nil` if the path is not known.
    public static func find() -> String? {
        let real = link("/proc/self/exe")
        guard let named = ProgramArguments.all?.first.flatMap(path) else { return real }
        // The first argument may be anything. If it names another file, it is no path of this program. A program that
        // the loader was told to load looks like the loader.
        let loader = real?.split(separator: "/").last?.hasPrefix("ld") ?? true
        return loader || identity(named) == identity("/proc/self/exe") ? named : real
    }

    /// The absolute path of `name`, as a shell finds it.
    private static func path(_ name: String) -> String? {
        if name.hasPrefix("/") { return name }
        if name.contains("/") {
            return unsafe getcwd(nil, 0).map { folder in
                defer { unsafe free(folder) }
                return unsafe String(cString: folder) + "/" + name
            }
        }
        let folders = unsafe getenv("PATH").map { unsafe String(cString: $0) } ?? ""
        return folders.split(separator: ":").map { "\($0)/\(name)" }.first { unsafe access($0, X_OK) == 0 }
    }

    private static func identity(_ path: String) -> [UInt64]? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? [UInt64(status.st_dev), UInt64(status.st_ino)] : nil
    }

    private static func link(_ path: String) -> String? {
        var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let length = unsafe target.withUnsafeMutableBytes {
            unsafe readlink(path, $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
        }
        return length > 0 ? String(decoding: target[..<length], as: UTF8.self) : nil
    }
}
