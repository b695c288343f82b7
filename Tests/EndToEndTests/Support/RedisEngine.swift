import Glibc

/// A redis-server of one test's own, on a Unix socket, without a file on disk.
final class RedisEngine: Sendable {
    let folder: String
    let child: pid_t
    var path: String { "\(folder)/engine.sock" }
    var url: String { "unix:\(path)" }

    /// - Parameter arguments: more of them.
    init(_ arguments: [String] = []) throws {
        folder = try System.makeTemporaryFolder()
        child = try Self.start(in: folder, arguments)
        let socket = "\(folder)/engine.sock"
        try eventually("redis-server is there (apt-get install redis-server)") { System.exists(socket) }
    }

    private static func start(in folder: String, _ arguments: [String]) throws -> pid_t {
        try Spawn.start(
            "/usr/bin/redis-server",
            ["--port", "0", "--unixsocket", "\(folder)/engine.sock", "--save", "", "--appendonly", "no"] + arguments,
            output: "\(folder)/stdout", errors: "\(folder)/stderr")
    }

    /// Has the engine execute a command, over a connection of its own.
    /// - Returns: what redis-cli prints.
    @discardableResult
    func command(_ words: [String]) throws -> String {
        let output = "\(folder)/redis-cli"
        let child = try Spawn.start(
            "/usr/bin/redis-cli", ["-s", path] + words, output: output, errors: "\(folder)/stderr-cli")
        try eventually("redis-cli ends") { Spawn.poll(child) != nil }
        return System.contents(of: output)
    }

    func signal(_ number: Int32) { Spawn.signal(child, number) }

    deinit {
        Spawn.signal(child, SIGCONT)
        Spawn.signal(child, SIGKILL)
        while Spawn.poll(child) == nil { System.nap(.milliseconds(1)) }
        System.removeFolder(folder)
    }
}
