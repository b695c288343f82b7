import Glibc
import SharedTier
import Synchronization

/// A redis-server of the tests' own, on a Unix socket, without a file on disk.
final class Engine: Sendable {
    struct Failure: Error, CustomStringConvertible { let description: String }

    let path: String
    private let process: pid_t

    /// For tests that change nothing but their own keys. It ends with the tests.
    static let shared = Result { () throws(Failure) in
        let engine = try Engine()
        toEnd.withLock { $0 = engine.process }
        atexit { toEnd.withLock { process in if process > 0 { kill(process, SIGKILL) } } }
        return engine
    }
    private static let toEnd = Mutex<pid_t>(0)
    private static let count = Atomic(0)

    init() throws(Failure) {
        let number = Self.count.add(1, ordering: .relaxed).newValue
        path = "/tmp/shared-tier-\(getpid())-\(number).sock"
        let programs = ["/usr/bin/redis-server", "/usr/bin/valkey-server", "/usr/local/bin/redis-server"]
        guard let program = programs.first(where: { unsafe access($0, X_OK) == 0 }) else {
            throw Failure(description: "no redis-server: apt-get install redis-server")
        }
        let words = [program, "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no"]
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        unsafe posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
        defer { for index in unsafe arguments.indices { unsafe free(arguments[index]) } }
        var process: pid_t = 0
        let code = unsafe posix_spawn(&process, program, &actions, &attributes, &arguments, environ)
        guard code == 0 else { throw Failure(description: "\(program) does not start: error \(code)") }
        self.process = process
        for _ in 0..<1000 {
            if unsafe access(path, F_OK) == 0 {
                let connection = try EngineConnection(path)
                guard case .text = try connection.send(TierCommand.load) else {
                    throw Failure(description: "the engine does not take the functions")
                }
                return
            }
            usleep(10_000)
        }
        throw Failure(description: "\(program) has no socket after 10 s")
    }

    deinit {
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
        unsafe unlink(path)
    }
}
