import Synchronization

// What the examples work with.

struct Profile: Sendable, Equatable {
    let name: String
}

final class ProfileServer: Sendable {
    let asked = Asked<Int, Profile>()
    func profile(of user: Int) async throws -> Profile { try await asked.ask(user) }
}

final class Cache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let kept = Mutex<[Key: Value]>([:])

    subscript(key: Key) -> Value? {
        get { kept.withLock { $0[key] } }
        set { kept.withLock { $0[key] = newValue } }
    }
}

struct Forecast: Codable, Sendable, Equatable {
    let city: String
    let degrees: Int
}

struct Thumbnail: Sendable, Equatable {
    let photo: String
}

final class Renderer: Sendable {
    let asked = Asked<String, Thumbnail>()
    func thumbnail(of photo: String) async throws -> Thumbnail { try await asked.ask(photo) }
}

final class Disk: Sendable {
    let asked = Asked<String, Void>()
    func sweep(_ done: @escaping @Sendable () -> Void) { asked.ask("sweep") { _ in done() } }
}

struct Connection: Sendable, Equatable {
    let peer: String
}

final class Network: Sendable {
    let resolve = Asked<String, [String]>()
    let connect = Asked<String, Connection>()

    func resolve(_ host: String, _ answer: @escaping @Sendable (Result<[String], any Error>) -> Void) {
        resolve.ask(host, answer)
    }

    func connect(
        _ addresses: [String], _ port: Int, _ answer: @escaping @Sendable (Result<Connection, any Error>) -> Void
    ) {
        connect.ask("\(addresses[0]):\(port)", answer)
    }
}

struct User: Sendable, Equatable {
    let name: String
}

final class Database: Sendable {
    let asked = Asked<[Int], [Int: User]>()

    func user(_ id: Int) async throws -> User {
        try await asked.ask([id])[id] ?? User(name: "nobody")
    }

    func users(_ ids: [Int], _ answer: @escaping @Sendable (Result<[Int: User], any Error>) -> Void) {
        asked.ask(ids.sorted(), answer)
    }
}

/// The lines of one log, as a test writes them.
final class LogServer: Sendable {
    let asked = Log<String>()
    private let (reader, writer) = AsyncStream<String>.makeStream()

    func lines(of log: String) async throws -> AsyncStream<String> {
        asked.append(log)
        return reader
    }

    func write(_ line: String) { writer.yield(line) }
    func finish() { writer.finish() }
}
