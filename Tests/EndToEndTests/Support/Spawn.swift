import Glibc
import Synchronization

/// A child process with its output in files.
enum Spawn {
    enum Exit: Equatable, CustomStringConvertible {
        case code(Int32)
        case signal(Int32)

        var description: String {
            switch self {
            case .code(let code): "exit \(code)"
            case .signal(let signal): "killed by signal \(signal)"
            }
        }
    }

    /// Starts `path`; standard input is empty, output goes to the two files.
    /// - Parameter passed: descriptors that it gets as 3 and so on.
    static func start(
        _ path: String, _ arguments: [String], output: String, errors: String, passing passed: [Int32] = []
    ) throws -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o644)
        unsafe posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_APPEND, 0o644)

        _ = inheritedStayHere

        // Out of the way of the numbers they get.
        let copies = passed.map { fcntl($0, F_DUPFD_CLOEXEC, 64) }
        defer { for copy in copies { Socket.close(copy) } }
        for (index, copy) in copies.enumerated() {
            unsafe posix_spawn_file_actions_adddup2(&actions, copy, Int32(3 + index))
        }

        // Threads of Swift's pool block signals, and a child inherits that: it would never hear of SIGTERM.
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

        var words = unsafe ([path] + arguments).map { unsafe strdup($0) } + [nil]
        defer { for index in unsafe words.indices { unsafe free(words[index]) } }
        var child: pid_t = 0
        let code = betweenStarts { unsafe posix_spawn(&child, path, &actions, &attributes, &words, environ) }
        guard code == 0 else { throw System.Failure(call: "posix_spawn \(path)", code: code) }
        return child
    }

    /// What whoever started the tests left open is not for the programs: some may have few descriptors.
    private static let inheritedStayHere: Void = {
        for number in System.list("/proc/self/fd").compactMap({ Int32($0) }) where number > 2 {
            _ = fcntl(number, F_SETFD, FD_CLOEXEC)
        }
    }()

    /// Held while a child has a copy of all our descriptors, which it has until the program is loaded into it.
    private static let copying = Mutex(())

    /// Does something that no child may see half done, such as closing a socket: in a copy it would stay open, so that
    /// a listener still accepts and a peer hears of no end. Takes a lock.
    static func betweenStarts<Result: Sendable>(_ body: () -> Result) -> Result { copying.withLock { _ in body() } }

    /// How the child ended, or nil while it runs. Asked again after that, it would be a stranger: ask once.
    static func poll(_ child: pid_t) -> Exit? {
        var status: Int32 = 0
        guard unsafe waitpid(child, &status, WNOHANG) == child else { return nil }
        let signal = status & 0x7F
        return signal == 0 ? .code((status >> 8) & 0xFF) : .signal(signal)
    }

    static func signal(_ child: pid_t, _ number: Int32) { _ = kill(child, number) }

    /// Changes how many descriptors the child may have; those it has stay open. By util-linux's program, since the call
    /// is not to be had in Swift.
    static func limitDescriptors(of child: pid_t, to count: Int) throws {
        let helper = try start(
            "/usr/bin/prlimit", ["--pid", "\(child)", "--nofile=\(count):"], output: "/dev/null", errors: "/dev/null")
        var exit: Exit?
        try eventually("prlimit ends") {
            exit = poll(helper)
            return exit != nil
        }
        guard exit == .code(0) else { throw System.Failure(call: "prlimit", code: EINVAL) }
    }
}
