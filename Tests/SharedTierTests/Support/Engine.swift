import Glibc
import SharedTier
import Synchronization

/// A redis-server of the tests' own, on a Unix socket, without a file on disk. A shell between the two ends it as soon as
/// its own input ends: with this object, or with the tests, however they end.
final class Engine: Sendable {
    struct Failure: Error, CustomStringConvertible { let description: String }

    let path: String
    private let process: pid_t
    private let input: Int32

    /// For tests that change nothing but their own keys.
    static let shared = Result { () throws(Failure) in try Engine() }
    private static let count = Atomic(0)

    init() throws(Failure) {
        let number = Self.count.add(1, ordering: .relaxed).newValue
        path = "/tmp/shared-tier-\(getpid())-\(number).sock"
        let programs = ["/usr/bin/redis-server", "/usr/bin/valkey-server", "/usr/local/bin/redis-server"]
        guard let program = programs.first(where: { unsafe access($0, X_OK) == 0 }) else {
            throw Failure(description: "no redis-server: apt-get install redis-server")
        }
        let shell = "\"$0\" \"$@\" </dev/null & server=$!; read line; kill -9 $server; rm -f \"$4\""
        let words = [
            "/bin/sh", "-c", shell, program, "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no",
        ]
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        // As a pair of sockets, since Swift does not see `pipe2`: other programs that the tests start must not have it.
        var ends: (Int32, Int32) = (0, 0)
        unsafe withUnsafeMutableBytes(of: &ends) { ends in
            let numbers = unsafe ends.baseAddress?.assumingMemoryBound(to: Int32.self)
            _ = unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, numbers)
        }
        defer { close(ends.0) }
        unsafe posix_spawn_file_actions_adddup2(&actions, ends.0, 0)
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
        let code = unsafe posix_spawn(&process, "/bin/sh", &actions, &attributes, &arguments, environ)
        guard code == 0 else { throw Failure(description: "\(program) does not start: error \(code)") }
        self.process = process
        input = ends.1
        for _ in 0..<1000 {
            if let connection = try? EngineConnection(path) {
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
        close(input)
        waitpid(process, nil, 0)
        unsafe unlink(path)
    }
}
