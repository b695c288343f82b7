import CEpoll
import Glibc

/// The system calls of the benchmarks, each wrapped once. The memory-unsafe code of this target is here and in `Child`.
enum System {
    struct Failure: Error, CustomStringConvertible {
        let call: String
        let code: Int32
        var description: String {
            "\(call): \(unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)")"
        }
    }

    /// Nanoseconds of the monotonic clock.
    static var now: Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    static func nap(milliseconds: Int) { nap(microseconds: milliseconds * 1000) }
    static func nap(microseconds: Int) { usleep(UInt32(microseconds)) }

    /// Lets other threads of this core go first.
    static func yield() { sched_yield() }

    /// Nanoseconds of CPU time that this process has used, all threads together.
    static var processTime: Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Nanoseconds of CPU time of the child processes that have ended, and of the children that these waited for.
    static var childrenTime: Int64 {
        var usage = rusage()
        guard unsafe getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage) == 0 else { return 0 }
        return [usage.ru_utime, usage.ru_stime].reduce(0) {
            $0 + Int64($1.tv_sec) * 1_000_000_000 + Int64($1.tv_usec) * 1000
        }
    }

    /// Nanoseconds of CPU time of another process, ended threads included; nil if no process has that number.
    static func processTime(of process: Int32) -> Int64? {
        var (clock, time) = (clockid_t(), timespec())
        guard unsafe clock_getcpuclockid(process, &clock) == 0, unsafe clock_gettime(clock, &time) == 0 else {
            return nil
        }
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Nanoseconds of CPU time of the calling thread.
    static var threadTime: Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Makes the calling thread, and the threads that it starts from now on, run only on the core with this number, if
    /// there is one.
    static func pin(toCore core: Int32) { _ = pin_to_core(core) }

    /// Raises the limit of descriptors: ten thousand connections need as many, here and in the programs, which inherit
    /// the limit.
    @discardableResult
    static func raiseDescriptorLimit() -> Int {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        limit.rlim_cur = limit.rlim_max
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(limit.rlim_cur)
    }

    static func startThread(_ body: @escaping @Sendable () -> Void) {
        let box = unsafe Unmanaged.passRetained(ThreadBody(run: body)).toOpaque()
        var thread = pthread_t()
        let code = unsafe pthread_create(
            &thread, nil,
            { raw in
                if let raw = unsafe raw { unsafe Unmanaged<ThreadBody>.fromOpaque(raw).takeRetainedValue().run() }
                return nil
            }, box)
        precondition(code == 0, "no thread")
        pthread_detach(thread)
    }

    private final class ThreadBody: Sendable {
        let run: @Sendable () -> Void
        init(run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Gives the calling thread precedence over all ordinary threads, where that is permitted, or makes it an ordinary
    /// one again.
    static func prefersThisThread(_ isPreferred: Bool) {
        var parameters = sched_param()
        parameters.sched_priority = isPreferred ? 10 : 0
        _ = unsafe pthread_setschedparam(pthread_self(), isPreferred ? SCHED_FIFO : SCHED_OTHER, &parameters)
    }

    /// Memory that this process has touched, to be lent to the kernel during a measurement.
    ///
    /// On a virtual machine, the host takes back memory that has been free for some seconds. The first touch of a page
    /// that the host must give again costs 10 to 20 µs, which are charged to the thread that touches it, because a log
    /// grows or a socket sends. That time was half of the cost of a waiter in a storm, and a sixteenth of a hit's.
    @safe struct SpareMemory {
        private let start: UnsafeMutableRawPointer?
        private let bytes: Int

        /// - Parameter most: bytes; a tenth of the free memory if that is less.
        init(_ most: Int) {
            bytes = min(most, sysconf(Int32(_SC_AVPHYS_PAGES)) / 10 * 4096)
            let memory = unsafe mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            unsafe start = memory == MAP_FAILED ? nil : memory
            takeBack()
        }

        func lend() {
            if let start = unsafe start { _ = unsafe madvise(start, bytes, MADV_DONTNEED) }
        }

        func takeBack() {
            guard let start = unsafe start else { return }
            // `place` is within the mapping.
            for place in stride(from: 0, to: bytes, by: 4096) {
                unsafe start.storeBytes(of: 1, toByteOffset: place, as: UInt8.self)
            }
        }
    }

    /// Empties a file. A program that has it open to append continues at its start.
    static func empty(_ file: String) { _ = unsafe truncate(file, 0) }

    // MARK: - Sockets

    private static func withAddress<R>(port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, length) }
        }
    }

    private static func setNoDelay(_ descriptor: Int32) {
        var one: Int32 = 1
        unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    }

    static func listen(port: Int) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC, 0)
        var one: Int32 = 1
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        let bound = unsafe withAddress(port: port) { unsafe bind(descriptor, $0, $1) }
        guard bound == 0, Glibc.listen(descriptor, 16384) == 0 else {
            throw Failure(call: "listen on \(port)", code: errno)
        }
        return descriptor
    }

    static func accept(_ listener: Int32) -> Int32? {
        let descriptor = Glibc.accept(listener, nil, nil)
        guard descriptor >= 0 else { return nil }
        // Programs that are started while the connection lives must not inherit it.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        setNonBlocking(descriptor)
        setNoDelay(descriptor)
        return descriptor
    }

    /// A connection to this machine, or nil if no program listens.
    static func connect(port: Int) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return nil }
        let connected = unsafe withAddress(port: port) { unsafe Glibc.connect(descriptor, $0, $1) }
        guard connected == 0 else { Glibc.close(descriptor); return nil }
        setNoDelay(descriptor)
        return descriptor
    }

    /// A connection to this machine that may not be established yet: until then, writing fails with "later". nil if
    /// there can be no connection.
    static func beginConnect(port: Int) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return nil }
        let connected = unsafe withAddress(port: port) { unsafe Glibc.connect(descriptor, $0, $1) }
        guard connected == 0 || errno == EINPROGRESS else { Glibc.close(descriptor); return nil }
        setNoDelay(descriptor)
        return descriptor
    }

    static func setNonBlocking(_ descriptor: Int32) { _ = fcntl(descriptor, F_SETFL, O_NONBLOCK) }

    static func setReceiveTimeout(_ descriptor: Int32, seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    static func close(_ descriptor: Int32) { _ = Glibc.close(descriptor) }

    /// The number of bytes read into `buffer` from `start` on; 0 at the end; nil if there are none now; -1 on failure.
    static func read(_ descriptor: Int32, into buffer: inout [UInt8], from start: Int = 0) -> Int? {
        let count = unsafe buffer.withUnsafeMutableBytes { bytes in
            // The slice checks `start`; the kernel writes at most into the memory after it.
            let free = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[start...])
            return unsafe recv(descriptor, free.baseAddress, free.count, 0)
        }
        return count < 0 && errno == EAGAIN ? nil : count
    }

    /// Removes up to `most` bytes unread, without copying them (tcp(7), `MSG_TRUNC`). Returns the same as `read`.
    static func discard(_ descriptor: Int32, most: Int) -> Int? {
        let count = recv(descriptor, nil, most, Int32(MSG_TRUNC))
        return count < 0 && errno == EAGAIN ? nil : count
    }

    /// The number of bytes written, 0 if the kernel accepts no more now, -1 on failure.
    static func write(_ descriptor: Int32, _ bytes: [UInt8], from start: Int = 0) -> Int {
        let count = unsafe bytes.withUnsafeBytes { buffer in
            let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[start...])
            return unsafe send(descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
        }
        return count < 0 && errno == EAGAIN ? 0 : count
    }

    // MARK: - Bytes

    /// The first place of `word`, at `start` or after it.
    static func find(_ word: [UInt8], in bytes: Span<UInt8>, from start: Int) -> Int? {
        unsafe bytes.withUnsafeBytes { all in
            // The slice checks `start`; `find_bytes` reads only the two ranges that it is given.
            let rest = unsafe UnsafeRawBufferPointer(rebasing: all[start...])
            let place = unsafe word.withUnsafeBytes {
                unsafe find_bytes(rest.baseAddress, rest.count, $0.baseAddress, $0.count)
            }
            return place < 0 ? nil : start + place
        }
    }

    /// Whether `word` stands at `start`.
    static func has(_ word: [UInt8], in bytes: Span<UInt8>, at start: Int) -> Bool {
        guard start >= 0, word.count <= bytes.count - start else { return false }
        return unsafe bytes.withUnsafeBytes { all in
            unsafe word.withUnsafeBytes { sought in
                guard let base = all.baseAddress, let other = sought.baseAddress else { return word.isEmpty }
                // The guard has measured both ranges.
                return unsafe memcmp(base + start, other, sought.count) == 0
            }
        }
    }

    // MARK: - Polling

    /// The descriptors that are ready for reading or writing, by the tag with which they were added.
    struct PollSet {
        private let descriptor = poll_set_make()
        private var ready = [Int32](repeating: 0, count: 256)

        func add(_ watched: Int32, tag: Int, writing: Bool = false) {
            _ = poll_set_watch(descriptor, watched, Int32(tag), writing ? 1 : 0, 1)
        }
        func modify(_ watched: Int32, tag: Int, writing: Bool) {
            _ = poll_set_watch(descriptor, watched, Int32(tag), writing ? 1 : 0, 0)
        }

        mutating func wait(milliseconds: Int32) -> ArraySlice<Int32> {
            let count = unsafe poll_set_wait(descriptor, &ready, milliseconds)
            return ready[..<max(0, Int(count))]
        }

        func close() { System.close(descriptor) }
    }
}
