import Glibc

/// The system calls of the harness, each wrapped once. What is memory-unsafe in the harness is here, in `Spawn.swift`
/// and in the comparison of `Pattern.swift`.
enum System {
    struct Failure: Error, CustomStringConvertible {
        let call: String
        let code: Int32
        var description: String { "\(call): \(errorText(code))" }
    }

    static func errorText(_ code: Int32) -> String {
        unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)"
    }

    static var lastError: Int32 { errno }

    /// Ten thousand connections need as many descriptors, here and in the program (which inherits the limit).
    /// Returns how many there may be.
    static let descriptorLimit: Int = {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        if limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max
            _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            _ = unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        return Int(limit.rlim_cur)
    }()

    /// Runs `body` on a new thread of its own.
    static func startThread(_ body: @escaping @Sendable () -> Void) {
        let box = unsafe Unmanaged.passRetained(ThreadBody(run: body)).toOpaque()
        var thread = pthread_t()
        let code = unsafe pthread_create(
            &thread, nil,
            { raw in
                unsafe Unmanaged<ThreadBody>.fromOpaque(raw!).takeRetainedValue().run()
                return nil
            }, box)
        precondition(code == 0, "no thread: \(errorText(code))")
        pthread_detach(thread)
    }

    private final class ThreadBody: Sendable {
        let run: @Sendable () -> Void
        init(run: @escaping @Sendable () -> Void) { self.run = run }
    }

    static func nap(_ duration: Duration) {
        let parts = duration.components
        var time = timespec(tv_sec: Int(parts.seconds), tv_nsec: Int(parts.attoseconds / 1_000_000_000))
        _ = unsafe nanosleep(&time, nil)
    }

    /// An IMF-fixdate, `offset` seconds from now (RFC 9110 §5.6.7).
    static func httpDate(_ offset: Int = 0) -> String {
        var moment = time(nil) + offset
        var parts = unsafe tm()
        _ = unsafe gmtime_r(&moment, &parts)
        var text = [CChar](repeating: 0, count: 40)
        let length = unsafe strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(decoding: text.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The wall clock, in seconds since 1970.
    static var secondsNow: Int { time(nil) }

    static func environment(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    // MARK: - Files

    static func contents(of path: String) -> String {
        // Without waiting: a FIFO may have lost whoever wrote there.
        let file = unsafe open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { _ = Glibc.close(file) }
        var all: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = unsafe Glibc.read(file, &piece, piece.count)
            guard count > 0 else { return String(decoding: all, as: UTF8.self) }
            all += piece[..<count]
        }
    }

    /// - Parameter permissions: of a new file.
    static func write(_ text: String, to path: String, permissions: mode_t = 0o644) throws {
        try write(Array(text.utf8), to: path, permissions: permissions)
    }

    static func write(_ bytes: [UInt8], to path: String, permissions: mode_t = 0o644) throws {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, permissions)
        guard file >= 0 else { throw Failure(call: "open \(path)", code: errno) }
        defer { _ = Glibc.close(file) }
        guard unsafe Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw Failure(call: "write \(path)", code: errno)
        }
    }

    static func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }
    static func isExecutable(_ path: String) -> Bool { unsafe access(path, X_OK) == 0 && !isFolder(path) }

    static func isFolder(_ path: String) -> Bool {
        var about = stat()
        return unsafe stat(path, &about) == 0 && about.st_mode & S_IFMT == S_IFDIR
    }

    /// Who may do what with it: the lowest nine bits of its mode.
    static func permissions(of path: String) -> UInt32 {
        var about = stat()
        return unsafe stat(path, &about) == 0 ? about.st_mode & 0o777 : 0
    }

    static func makeTemporaryFolder() throws -> String {
        var template = Array("/tmp/coalesced-test-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw Failure(call: "mkdtemp", code: errno) }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static func list(_ folder: String) -> [String] {
        guard let handle = unsafe opendir(folder) else { return [] }
        defer { _ = unsafe closedir(handle) }
        var names: [String] = []
        while let entry = unsafe readdir(handle) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// Whether the kernel holds bytes for a TCP socket, of whatever program, whose own end or whose peer has this port.
    static func hasUnreadBytes(ownPort: UInt16? = nil, peerPort: UInt16? = nil) -> Bool {
        connections(ownPort: ownPort, peerPort: peerPort).contains { $0.unread > 0 }
    }

    /// Whether some TCP socket on this machine, of which its own or its peer's port is given, has not heard of an end
    /// yet. What the other side did a moment ago may still be on its way, on one machine too.
    static func hasOpenConnection(ownPort: UInt16? = nil, peerPort: UInt16? = nil) -> Bool {
        connections(ownPort: ownPort, peerPort: peerPort).contains { $0.state == "01" }
    }

    /// Of TCP over IPv4, without those that listen: the state's number in the kernel, and the bytes that wait to be
    /// read.
    private static func connections(ownPort: UInt16?, peerPort: UInt16?) -> [(state: Substring, unread: Int)] {
        contents(of: "/proc/net/tcp").split(separator: "\n").dropFirst().compactMap { line in
            let columns = line.split(separator: " ")
            guard columns.count > 4, columns[3] != "0A",
                let unread = columns[4].split(separator: ":").last.flatMap({ Int($0, radix: 16) })
            else { return nil }
            let ports = columns[1...2].map { $0.split(separator: ":").last.flatMap { UInt16($0, radix: 16) } }
            guard ownPort == nil || ports[0] == ownPort, peerPort == nil || ports[1] == peerPort else { return nil }
            return (columns[3], unread)
        }
    }

    /// The paths of all Swift files in `folder` and the folders in it.
    static func sources(in folder: String) -> [String] {
        list(folder).filter { !$0.hasPrefix(".") }.flatMap { entry in
            entry.hasSuffix(".swift")
                ? ["\(folder)/\(entry)"] : entry.contains(".") ? [] : sources(in: "\(folder)/\(entry)")
        }
    }

    /// Removes a folder and the files directly in it.
    static func removeFolder(_ path: String) {
        for name in list(path) { _ = unsafe unlink("\(path)/\(name)") }
        _ = unsafe rmdir(path)
    }

    static func makeFolder(_ path: String) { _ = unsafe mkdir(path, 0o755) }

    /// Makes a symbolic link.
    static func link(_ path: String, to target: String) throws {
        guard unsafe symlink(target, path) == 0 else { throw Failure(call: "symlink \(path)", code: errno) }
    }

    static func makeFIFO(_ path: String) { _ = unsafe mkfifo(path, 0o600) }
    static func makeExecutable(_ path: String) { _ = unsafe chmod(path, 0o755) }
    static func remove(_ path: String) { _ = unsafe unlink(path) }
    static func rename(_ old: String, to new: String) { _ = unsafe Glibc.rename(old, new) }

    static func target(ofLink path: String) -> String? {
        var name = [UInt8](repeating: 0, count: 4096)
        let length = unsafe name.withUnsafeMutableBytes { buffer in
            unsafe readlink(path, buffer.baseAddress!.assumingMemoryBound(to: CChar.self), buffer.count)
        }
        return length > 0 ? String(decoding: name[..<length], as: UTF8.self) : nil
    }
}
