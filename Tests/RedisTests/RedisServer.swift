import Glibc
import Libevent

@testable import Redis

/// A real engine, with a folder and a Unix socket of its own.
final class RedisServer {
    struct NotThere: Error, CustomStringConvertible {
        let description: String
    }

    let folder: String
    private let arguments: [String]
    private(set) var process: pid_t = 0

    var path: String { folder + "/redis.sock" }

    /// The address of the socket.
    var address: RedisAddress { RedisAddress(.unix(path: path)) }

    /// Starts the engine, and waits until it takes connections.
    convenience init(_ arguments: String...) throws { try self.init(words: arguments) }

    /// - Parameter arguments: of its command line.
    init(words arguments: [String]) throws {
        var template = Array("/tmp/redis-tests-XXXXXX".utf8CString)
        guard let made = unsafe mkdtemp(&template) else { throw NotThere(description: "no folder: \(errno)") }
        folder = unsafe String(cString: made)
        self.arguments = arguments
        try start()
    }

    deinit {
        stop()
        for file in ["redis.sock", "nodes.conf"] { _ = unsafe unlink("\(folder)/\(file)") }
        _ = unsafe rmdir(folder)
    }

    func start() throws {
        let program = "/usr/bin/redis-server"
        guard unsafe access(program, X_OK) == 0 else {
            throw NotThere(description: "no \(program): apt-get install redis-server")
        }
        let own = ["--unixsocket", path, "--save", "", "--appendonly", "no", "--dir", folder, "--daemonize", "no"]
        let port = arguments.contains("--port") ? [] : ["--port", "0"]
        process = try Self.spawn(program, port + own + arguments)
        for _ in 0..<1000 {
            if canConnect { return }
            guard waitpid(process, nil, WNOHANG) == 0 else {
                process = 0
                throw NotThere(description: "redis-server ended at once")
            }
            usleep(5000)
        }
        throw NotThere(description: "redis-server did not start")
    }

    private var canConnect: Bool {
        guard let loop = try? EventLoop(), (try? Socket(connectingTo: .unix(path: path), on: loop)) != nil else {
            return false
        }
        return true
    }

    func signal(_ number: Int32) { kill(process, number) }

    func stop() {
        guard process > 0 else { return }
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
        process = 0
    }

    private static func spawn(_ program: String, _ arguments: [String]) throws -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        // Whoever reads what the tests say waits for the end of every copy of their output.
        for number in [1, 2] as [Int32] {
            unsafe posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_WRONLY, 0)
        }
        // Threads of Swift's pool block signals, and a child inherits that.
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var words = unsafe ([program] + arguments).map { unsafe strdup($0) } + [nil]
        defer { for index in unsafe words.indices { unsafe free(words[index]) } }
        var child: pid_t = 0
        let code = unsafe posix_spawn(&child, program, &actions, &attributes, &words, environ)
        guard code == 0 else { throw NotThere(description: "posix_spawn: \(code)") }
        return child
    }
}
