import Configuration
import Glibc
import Libevent

/// The few C calls of the command line. Every `unsafe` of this target is here. Pointers are made from Swift values for
/// one call each, and the called functions do not keep them.
enum System {
    enum Failure: Error, CustomStringConvertible {
        /// A failed call's `errno`.
        case call(Int32)
        case notAFile
        /// The file is a pipe, and waiting for its writer is not allowed.
        case mayWait
        case tooLarge

        /// The `errno` of the call that has just failed.
        static var last: Failure { .call(errno) }
        var isMissing: Bool { if case .call(ENOENT) = self { true } else { false } }
        var isForbidden: Bool {
            switch self {
            case .call(EACCES), .call(EPERM): true
            case .call, .notAFile, .mayWait, .tooLarge: false
            }
        }
        var description: String {
            switch self {
            // `strerror` returns constant or thread-local memory; the text is copied at once.
            case .call(let code): unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)"
            case .notAFile: "Neither a regular file nor a pipe"
            case .mayWait: "Not a regular file: a pipe can only be read at startup"
            case .tooLarge: "Larger than \(System.largestFile >> 20) MiB"
            }
        }
    }

    /// The most bytes of a file that is read. A configuration file has some thousand bytes; the wrong file or a device
    /// must not fill the memory.
    static let largestFile = 1 << 20

    static func environment(_ name: String) -> String? {
        // This target sets no variable, so the result of `getenv` stays valid while it is copied.
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    /// The variables whose names begin with `prefix`.
    static func environment(withPrefix prefix: String) -> [String: String] {
        var variables: [String: String] = [:]
        // As above. A null pointer ends the list.
        var place: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> = unsafe environ
        while let variable = unsafe place.pointee {
            let text = unsafe String(cString: variable)
            if text.hasPrefix(prefix), let equals = text.firstIndex(of: "=") {
                variables[String(text[..<equals])] = String(text[equals...].dropFirst())
            }
            unsafe place += 1
        }
        return variables
    }

    /// The contents of a regular file or a pipe, as UTF-8. Invalid bytes become U+FFFD, which no key or value contains.
    /// - Parameter mayWait: whether to wait for a pipe's writer, perhaps forever. Otherwise a pipe is refused.
    static func contents(of path: String, mayWait: Bool) throws(Failure) -> String {
        String(decoding: try bytes(of: path, mayWait: mayWait), as: UTF8.self)
    }

    /// The contents of a regular file or a pipe, at most `largestFile`.
    static func bytes(of path: String, mayWait: Bool) throws(Failure) -> [UInt8] {
        let file = unsafe open(path, O_RDONLY | (mayWait ? 0 : O_NONBLOCK) | O_NOCTTY | O_CLOEXEC)
        // ENXIO: the path is a socket, as the standard input of a service may be.
        guard file >= 0 else { throw errno == ENXIO ? .notAFile : .last }
        defer { close(file) }
        var status = stat()
        guard unsafe fstat(file, &status) == 0 else { throw .last }
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFIFO: guard mayWait else { throw .mayWait }
        default: throw .notAFile
        }
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = unsafe read(file, &piece, piece.count)
            guard count >= 0 else { throw .last }
            if count == 0 { return text }
            text += piece[..<count]
            guard text.count <= largestFile else { throw .tooLarge }
        }
    }

    /// A new folder below `$TMPDIR` or `/tmp` that only this user may enter.
    static func makeFolder(named name: String) throws(Failure) -> String {
        let parent = environment("TMPDIR").flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
        var template = Array("\(parent)/\(name)-XXXXXX".utf8CString)
        // `mkdtemp` writes the name of the folder into the template.
        guard unsafe mkdtemp(&template) != nil else { throw .last }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static func write(_ text: String, toNewFile path: String) throws(Failure) {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw .last }
        defer { close(file) }
        try write(text, to: file)
    }

    /// Removes a folder with the files in it. An entry that cannot be removed stays.
    static func removeFolder(_ path: String) {
        if let folder = unsafe opendir(path) {
            // The entry stays valid until the next call; its name ends with a zero.
            while let entry = unsafe readdir(folder) {
                let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                    unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
                }
                if name != ".", name != ".." { unsafe unlink("\(path)/\(name)") }
            }
            unsafe closedir(folder)
        }
        unsafe rmdir(path)
    }

    /// The path of the first of these programs that is in a folder of `PATH`.
    static func program(named names: [String]) -> String? {
        let folders = (environment("PATH") ?? "/usr/local/bin:/usr/bin").split(separator: ":")
        for name in names {
            for folder in folders where unsafe access("\(folder)/\(name)", X_OK) == 0 { return "\(folder)/\(name)" }
        }
        return nil
    }

    /// Whether the permissions of a file let all users read it.
    static func isReadableByAll(_ path: String) -> Bool {
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & S_IROTH != 0
    }

    /// The state of a path where a folder should be.
    static func folder(_ path: String) -> Files.FolderState {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return errno == ENOENT ? .absent : .other }
        return status.st_mode & S_IFMT == S_IFDIR ? .folder : .other
    }

    /// The folder that relative paths begin in; `nil` if it is not known.
    static var currentFolder: String? {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        guard unsafe getcwd(&path, path.count) != nil else { return nil }
        return String(decoding: path.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The names of the user and the group that this program runs as; their numbers if they have none.
    static var userName: String {
        // The record stays valid until the next call, and the name is copied before.
        guard let record = unsafe getpwuid(geteuid()), let name = unsafe record.pointee.pw_name else {
            return "\(geteuid())"
        }
        return unsafe String(cString: name)
    }
    static var groupName: String {
        guard let record = unsafe getgrgid(getegid()), let name = unsafe record.pointee.gr_name else {
            return "\(getegid())"
        }
        return unsafe String(cString: name)
    }

    /// Seconds since 1970.
    static var wallClockSeconds: Int64 { Int64(time(nil)) }

    /// Whether two paths lead to one file.
    static func isSameFile(_ path: String, _ other: String) -> Bool {
        var (one, two) = (stat(), stat())
        guard unsafe stat(path, &one) == 0, unsafe stat(other, &two) == 0 else { return false }
        return one.st_dev == two.st_dev && one.st_ino == two.st_ino
    }

    /// Opens `/dev/null` in the place of each closed standard descriptor. Otherwise the next opened descriptor, perhaps
    /// a socket, would get that number, and the output for standard error. `/dev/null` is opened in the wrong
    /// direction, so that a read from standard input, or a write to standard output or standard error, still fails.
    static func occupyStandardDescriptors() {
        for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) < 0 {
            // `open` returns the lowest free number, which is this one.
            _ = unsafe open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// Writes all of `text` to standard error and waits as long as that takes: for commands, which have nothing else to
    /// do. The running proxy writes to the diagnostics log instead. A failure cannot be reported anywhere.
    static func writeError(_ text: String) { try? write(text, to: STDERR_FILENO) }

    /// Writes all of `text` to standard output.
    static func writeOutput(_ text: String) throws(Failure) { try write(text, to: STDOUT_FILENO) }

    private static func write(_ text: String, to descriptor: Int32) throws(Failure) {
        var text = text
        let failure: Failure? = text.withUTF8 { bytes in
            var written = 0
            while written < bytes.count {
                // `written` is in bounds by the loop's condition.
                let count = unsafe Glibc.write(
                    descriptor, bytes.baseAddress.map { unsafe $0 + written }, bytes.count - written)
                if count < 0, errno != EINTR { return .last }
                written += max(0, count)
            }
            return nil
        }
        if let failure { throw failure }
    }

    /// The size of the terminal on standard output; `nil` if standard output is not a terminal.
    static var terminalSize: (columns: Int, rows: Int)? {
        var size = winsize()
        // The kernel fills `size` during the call.
        guard unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 else { return nil }
        // A serial line reports 0.
        return (size.ws_col > 0 ? Int(size.ws_col) : 80, size.ws_row > 0 ? Int(size.ws_row) : 24)
    }

    /// From now on `signal` has no effect until a loop watches for it. With `SIGPIPE` ignored, a write to a pipe
    /// without a reader fails like any other write.
    static func ignore(_ signal: Int32) { _ = Glibc.signal(signal, SIG_IGN) }

    /// From now on `signal` waits until a loop watches for it. Call this while there is one thread.
    static func holdBack(_ signal: Int32) { mask(signal, SIG_BLOCK) }

    /// From now on `signal` ends the program with exit code 0, the same code as later, when a loop watches for it. A
    /// signal that was held back ends the program at once.
    static func exit(on signal: Int32) {
        _ = Glibc.signal(signal) { _ in _exit(0) }
        mask(signal, SIG_UNBLOCK)
    }

    private static func mask(_ signal: Int32, _ how: Int32) {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        unsafe sigaddset(&set, signal)
        unsafe sigprocmask(how, &set, nil)
    }

    static var processNumber: Int32 { getpid() }

    static func send(_ signal: Int32, to process: Int32) { _ = kill(process, signal) }

    /// Writes out buffered output, also to a pipe.
    static func flushOutput() { _ = fflush(nil) }

    /// Whether standard error goes to journald. journald names the stream's device and inode in `JOURNAL_STREAM`
    /// (systemd.exec(5)). They are compared, since standard error may have been redirected.
    static var errorsGoToJournal: Bool {
        guard let stream = environment("JOURNAL_STREAM") else { return false }
        var status = stat()
        guard unsafe fstat(STDERR_FILENO, &status) == 0 else { return false }
        return stream == "\(status.st_dev):\(status.st_ino)"
    }

    /// Sends `message` as one datagram to a Unix socket; fails if the socket does not take it at once. A path that
    /// begins with `@` is in the abstract namespace.
    static func send(_ message: String, toUnixSocket path: String) throws(Failure) {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .last }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(path.utf8)
        if name.first == UInt8(ascii: "@") { name[0] = 0 }
        guard name.count < MemoryLayout.size(ofValue: address.sun_path) else { throw .call(ENAMETOOLONG) }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: name) }
        // The length marks the end of an abstract name; a zero byte does not.
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        var message = message
        let sent = message.withUTF8 { text in
            unsafe withUnsafePointer(to: &address) { address in
                // `sockaddr_un` begins like `sockaddr`.
                unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe sendto(
                        descriptor, text.baseAddress, text.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT), $0, length)
                }
            }
        }
        guard sent >= 0 else { throw .last }
    }

    /// The bounds of the program's memory, in bytes: the machine's memory, `memory.max` of its control group and that
    /// group's ancestors (cgroups(7), version 2), and its `ulimit -v`.
    static func memoryBounds() -> [(name: String, bytes: Int)] {
        var bounds: [(name: String, bytes: Int)] = []
        let (pages, size) = (sysconf(Int32(_SC_PHYS_PAGES)), sysconf(Int32(_SC_PAGESIZE)))
        if pages > 0, size > 0 { bounds.append(("physical memory", pages * size)) }
        var limit = rlimit()
        if unsafe getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0, limit.rlim_cur < UInt64(Int.max) {
            bounds.append(("ulimit -v", Int(limit.rlim_cur)))
        }
        for group in ControlGroups().unified {
            if let bytes = group.text(of: "memory.max").flatMap({ Int($0.prefix { $0.isNumber }) }) {
                bounds.append(("memory.max of \(group.name)", bytes))
            }
        }
        return bounds
    }

    /// The present wall clock time in UTC, in the form of RFC 3339.
    static func timestamp() -> String {
        var seconds = time(nil)
        var parts = unsafe tm()
        guard unsafe gmtime_r(&seconds, &parts) != nil else { return "-" }
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { buffer in
            // The text has twenty characters and a zero; `strftime` writes no more bytes than `buffer` has.
            let count = unsafe strftime(buffer.baseAddress, buffer.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
            return unsafe count == 0 ? "-" : String(cString: buffer.baseAddress!)
        }
    }

    /// Microseconds on the monotonic clock, the unit that systemd expects.
    static func monotonicMicroseconds() -> Int64 {
        var now = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &now)
        return Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1_000
    }
}
