import CEpoll
import Glibc

/// The system calls of the benchmarks, each wrapped once. What is memory-unsafe in this target is here.
enum System {
    struct Failure: Error, CustomStringConvertible {
        let call: String
        let code: Int32
        var description: String { "\(call): error \(code)" }
    }

    /// Nanoseconds of the monotonic clock.
    static var now: Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    static func nap(milliseconds: Int) { usleep(UInt32(milliseconds) * 1000) }

    /// Ten thousand connections need as many descriptors, here and in the programs, which inherit the limit.
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
        let code = unsafe pthread_create(&thread, nil, { raw in
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

    /// The calling thread goes before all ordinary ones, where that is permitted.
    static func prefersThisThread() {
        var parameters = sched_param()
        parameters.sched_priority = 10
        _ = unsafe pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters)
    }

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
        // wrk must not inherit it: it has no place for connections with high numbers.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        setNonBlocking(descriptor)
        setNoDelay(descriptor)
        return descriptor
    }

    /// A connection to this machine, or nil when nobody listens.
    static func connect(port: Int) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return nil }
        let connected = unsafe withAddress(port: port) { unsafe Glibc.connect(descriptor, $0, $1) }
        guard connected == 0 else { Glibc.close(descriptor); return nil }
        setNoDelay(descriptor)
        return descriptor
    }

    static func setNonBlocking(_ descriptor: Int32) { _ = fcntl(descriptor, F_SETFL, O_NONBLOCK) }

    static func setReceiveTimeout(_ descriptor: Int32, seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    static func close(_ descriptor: Int32) { _ = Glibc.close(descriptor) }

    /// Bytes read; 0 at the end; nil when there is nothing now; -1 on failure.
    static func read(_ descriptor: Int32, into buffer: inout [UInt8]) -> Int? {
        let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
        return count < 0 && errno == EAGAIN ? nil : count
    }

    /// Bytes written, 0 when the kernel takes no more, -1 on failure.
    static func write(_ descriptor: Int32, _ bytes: [UInt8], from start: Int = 0) -> Int {
        let count = unsafe bytes.withUnsafeBytes { buffer in
            unsafe send(descriptor, buffer.baseAddress?.advanced(by: start), buffer.count - start, Int32(MSG_NOSIGNAL))
        }
        return count < 0 && errno == EAGAIN ? 0 : count
    }

    // MARK: - Polling

    /// What is ready to be read or written, by descriptor.
    struct PollSet {
        private let descriptor = poll_set_make()
        private var ready = [Int32](repeating: 0, count: 256)

        func add(_ watched: Int32) { _ = poll_set_watch(descriptor, watched, 0, 1) }
        func modify(_ watched: Int32, writing: Bool) { _ = poll_set_watch(descriptor, watched, writing ? 1 : 0, 0) }

        mutating func wait(milliseconds: Int32) -> ArraySlice<Int32> {
            let count = unsafe poll_set_wait(descriptor, &ready, milliseconds)
            return ready[..<max(0, Int(count))]
        }

        func close() { System.close(descriptor) }
    }
}
