internal import Glibc

/// The few C calls of the command line. Every `unsafe` of this target is here: pointers are made from Swift values for
/// one call each, and nothing keeps them.
enum System {
    /// A failed call's `errno`.
    struct Failure: Error, CustomStringConvertible {
        let code: Int32
        /// The `errno` of the call that has just failed.
        static var last: Failure { Failure(code: errno) }
        var isMissing: Bool { code == ENOENT }
        var isForbidden: Bool { code == EACCES || code == EPERM }
        // strerror answers from constant or thread-local memory, copied at once.
        var description: String { unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)" }
    }

    static func environment(_ name: String) -> String? {
        // Nothing here sets a variable, so what getenv gives stays while it is copied.
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    /// All of a file, as UTF-8; what is not UTF-8 becomes U+FFFD, which no key or value of ours has.
    static func contents(of path: String) throws(Failure) -> String {
        guard let file = unsafe fopen(path, "re") else { throw .last }
        defer { unsafe fclose(file) }
        var text: [UInt8] = []
        while case let byte = unsafe getc(file), byte != EOF { text.append(UInt8(truncatingIfNeeded: byte)) }
        // A directory opens, but cannot be read.
        guard unsafe ferror(file) == 0 else { throw .last }
        return String(decoding: text, as: UTF8.self)
    }

    /// Writes `text` to standard error at once, so that lines of several threads do not mix. Nobody is left to tell if it
    /// fails. A pipe that nobody reads loses the line: an event loop may be writing, which must not wait.
    static func writeError(_ text: String) {
        var target = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        guard unsafe poll(&target, 1, 0) > 0 else { return }
        var text = text
        // The kernel reads as many bytes as there are.
        _ = text.withUTF8 { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    /// What was printed goes out now, also where standard output is a pipe.
    static func flushOutput() { _ = fflush(nil) }

    /// Whether standard error goes to journald, which says so in `JOURNAL_STREAM` by device and inode
    /// (systemd.exec(5)): it may have been redirected since.
    static var errorsGoToJournal: Bool {
        guard let stream = environment("JOURNAL_STREAM") else { return false }
        var status = stat()
        guard unsafe fstat(STDERR_FILENO, &status) == 0 else { return false }
        return stream == "\(status.st_dev):\(status.st_ino)"
    }

    /// Sends `message` as one datagram to a Unix socket; a path that begins with `@` is in the abstract namespace.
    static func send(_ message: String, toUnixSocket path: String) throws(Failure) {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .last }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(path.utf8)
        if name.first == UInt8(ascii: "@") { name[0] = 0 }
        guard name.count < MemoryLayout.size(ofValue: address.sun_path) else { throw Failure(code: ENAMETOOLONG) }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: name) }
        // Abstract names end where the length says, not at a zero.
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        var message = message
        let sent = message.withUTF8 { text in
            unsafe withUnsafePointer(to: &address) { address in
                // sockaddr_un begins like sockaddr.
                unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe sendto(descriptor, text.baseAddress, text.count, Int32(MSG_NOSIGNAL), $0, length)
                }
            }
        }
        guard sent >= 0 else { throw .last }
    }

    /// The wall clock as RFC 3339 has it, in UTC.
    static func timestamp() -> String {
        var seconds = time(nil)
        var parts = unsafe tm()
        guard unsafe gmtime_r(&seconds, &parts) != nil else { return "-" }
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { buffer in
            // Twenty characters and a zero; strftime writes no more than it is given room for.
            let count = unsafe strftime(buffer.baseAddress, buffer.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
            return unsafe count == 0 ? "-" : String(cString: buffer.baseAddress!)
        }
    }

    /// Microseconds on the monotonic clock, as systemd wants them.
    static func monotonicMicroseconds() -> Int64 {
        var now = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &now)
        return Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1_000
    }
}
