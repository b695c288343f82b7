import Bytes
import Libevent
import LoopTesting
import TLS
import Testing

@testable import Redis

/// A command of these words, of which the second is its key.
func command(_ words: String...) -> RedisCommand {
    let name: StaticString =
        switch words[0] {
        case "GET": "GET"
        case "SET": "SET"
        case "ECHO": "ECHO"
        case "FCALL": "FCALL"
        case "FUNCTION": "FUNCTION"
        case "CONFIG": "CONFIG"
        case "ACL": "ACL"
        case "CLIENT": "CLIENT"
        case "CLUSTER": "CLUSTER"
        case "PING": "PING"
        default: "PING"
        }
    let command = RedisCommand(name)
    for (index, word) in words.dropFirst().enumerated() {
        let bytes = ByteSlice(word)
        if index == 0, ["GET", "SET"].contains(words[0]) { command.add(key: bytes) } else { command.add(bytes) }
    }
    return command
}

extension RedisReply: CustomStringConvertible {
    public var description: String {
        switch self {
        case .value(let value): "\(value)"
        case .unavailable(let why): "unavailable: \(why.rawValue)"
        case .late: "late"
        case .failed(.lost(let why)): "lost: \(why)"
        case .failed(.condition(let condition, let text)): "\(condition): \(String(text))"
        case .failed(.redirected(let redirection)):
            "\(redirection.isOnce ? "ask" : "moved") \(redirection.slot.number) to \(String(redirection.node))"
        case .failed(.functionUnknown): "function unknown"
        case .failed(.error(let text)): "error: \(String(text))"
        }
    }
}

extension RedisClient.Event: CustomStringConvertible {
    public var description: String {
        switch self {
        case .ready: "ready"
        case .lost(let why): "lost: \(why)"
        case .notConnected(let why): "not connected: \(why)"
        case .breakerOpened: "breaker opened"
        case .breakerClosed: "breaker closed"
        case .dropped: "not needed"
        }
    }
}

/// A client whose pushes and events are collected.
final class TestClient {
    let loop: EventLoop
    private(set) var client: RedisClient!
    private(set) var events: [String] = []
    private(set) var pushes: [String] = []
    private(set) var replies: [String] = []
    var onEvent: (TestClient, String) -> Void = { _, _ in }
    var onPush: (TestClient) -> Void = { _ in }

    init(
        _ address: RedisAddress, on loop: EventLoop, library: RedisLibrary? = nil, tls: TLSPeers? = nil,
        resolver: Resolver.Settings = .init(), _ change: (inout RedisSettings) -> Void = { _ in }
    ) {
        self.loop = loop
        var settings = RedisSettings()
        // A test whose machine is busy must not find anything late.
        settings.timeout = 5 * second
        settings.setUpLimit = 5 * second
        change(&settings)
        client = RedisClient(
            address, settings, library: library, tls: tls.map(TLSConnector.init), on: loop,
            resolver: Resolver(on: loop, settings: resolver)
        ) { [unowned self] in
            pushes.append("\(RESPValue.push($0))")
            onPush(self)
        } onEvent: { [unowned self] in
            events.append("\($0)")
            onEvent(self, "\($0)")
        }
    }

    func start(_ onEvent: @escaping (TestClient, String) -> Void = { _, _ in }) {
        self.onEvent = onEvent
        client.start()
    }

    /// Sends a command; the reply is collected too.
    func send(_ command: RedisCommand, _ then: @escaping (String) -> Void = { _ in }) {
        client.send(command) { [unowned self] reply in
            replies.append("\(reply)")
            then("\(reply)")
        }
    }

    /// Ends the client, and the test.
    func end() {
        client.stop()
        loop.stop()
    }
}

/// Ports on which nobody listens.
func freePorts(_ count: Int) throws -> [UInt16] {
    var ports: [UInt16] = []
    try onLoop { loop in
        let listeners = try (0..<count).map { _ in try Listener(.ipv4(.loopback, port: 0), on: loop) { _, _ in } }
        ports = listeners.compactMap(\.localAddress.port)
        for listener in listeners { listener.close() }
        loop.stop()
    }
    return ports
}
