import Glibc
import Synchronization

/// A redis-server of one test's own, on a Unix socket, without a file on disk.
final class RedisEngine: Sendable {
    let folder: String
    /// `nil` after `kill`.
    private let child: Mutex<pid_t?>
    var path: String { "\(folder)/engine.sock" }
    var url: String { "unix:\(path)" }

    /// - Parameter arguments: more of them.
    init(_ arguments: [String] = []) throws {
        folder = try System.makeTemporaryFolder()
        child = Mutex(try Self.start(in: folder, arguments))
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

    /// What the engine answers.
    enum Reply: Equatable {
        case none
        case number(Int)
        case text([UInt8])
        case error(String)
        case list([Reply])

        /// Of a text.
        var bytes: [UInt8] { if case .text(let bytes) = self { bytes } else { [] } }
        var string: String { String(decoding: bytes, as: UTF8.self) }
        var elements: [Reply] { if case .list(let elements) = self { elements } else { [] } }
    }

    /// Sends one command of these words, over a connection of its own.
    @discardableResult
    func send(_ words: String...) throws -> Reply { try send(words.map { Array($0.utf8) }) }

    @discardableResult
    func send(_ words: [[UInt8]]) throws -> Reply {
        let descriptor = try Socket.connect(to: .unix(path))
        defer { Socket.close(descriptor) }
        var line = Array("*\(words.count)\r\n".utf8)
        for word in words { line += Array("$\(word.count)\r\n".utf8) + word + [13, 10] }
        guard Socket.write(descriptor, line, from: 0) == .bytes(line.count) else { throw Silent() }
        var (came, scratch) = ([UInt8](), [UInt8](repeating: 0, count: 65536))
        let end = Instant.now + .seconds(10)
        while true {
            var rest = came[...]
            if let reply = Self.reply(&rest) { return reply }
            guard .now < end else { throw Silent() }
            var entries = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
            Socket.poll(&entries, within: .milliseconds(100))
            switch Socket.read(descriptor, into: &scratch) {
            case .bytes(let count): came += scratch[..<count]
            case .notNow: break
            case .ended, .cut, .failed: throw Silent()
            }
        }
    }

    struct Silent: Error {}

    /// `nil`: it is not all there yet.
    private static func reply(_ rest: inout ArraySlice<UInt8>) -> Reply? {
        guard let end = rest.firstRange(of: [13, 10]), let kind = rest.first else { return nil }
        let line = String(decoding: rest[(rest.startIndex + 1)..<end.lowerBound], as: UTF8.self)
        rest = rest[end.upperBound...]
        let count = Int(line) ?? 0
        switch kind {
        case UInt8(ascii: "+"): return .text(Array(line.utf8))
        case UInt8(ascii: "-"): return .error(line)
        case UInt8(ascii: ":"): return .number(count)
        case UInt8(ascii: "$"):
            guard count >= 0 else { return Reply.none }
            guard rest.count >= count + 2 else { return nil }
            defer { rest = rest.dropFirst(count + 2) }
            return .text(Array(rest.prefix(count)))
        default:
            guard count >= 0 else { return Reply.none }
            var elements: [Reply] = []
            for _ in 0..<count {
                guard let element = reply(&rest) else { return nil }
                elements.append(element)
            }
            return .list(elements)
        }
    }

    /// The names of the keys of one kind: `m`, `l` or `b`.
    func names(_ kind: String) throws -> [String] {
        try send("KEYS", "*:\(kind)*").elements.map(\.string).filter { $0.contains("}:\(kind)") }
    }

    /// Ends it, with all that it has.
    func kill() {
        child.withLock { child in
            guard let ended = child.take() else { return }
            Spawn.signal(ended, SIGKILL)
            while Spawn.poll(ended) == nil { System.nap(.milliseconds(1)) }
        }
        _ = unsafe unlink(path)
    }

    /// Starts it again, empty, after `kill`.
    func start() throws {
        let made = try Self.start(in: folder, [])
        child.withLock { $0 = made }
        try eventually("redis-server is there again") { System.exists(path) }
    }

    /// Has the function that looks up answer this Lua value; `now` is the engine's time in it.
    func replaceLookUp(by answer: String) throws {
        let listed = try send("FUNCTION", "LIST", "WITHCODE").elements.first?.elements ?? []
        let code = listed.last?.string ?? ""
        let made = code.replacing(
            "register('look', look, ", with: "register('look', function() local now = now() return \(answer) end, ")
        guard made != code, case .text = try send("FUNCTION", "LOAD", "REPLACE", made) else { throw Silent() }
    }

    func signal(_ number: Int32) { child.withLock { if let child = $0 { Spawn.signal(child, number) } } }

    deinit {
        kill()
        System.removeFolder(folder)
    }
}
