import Bytes
import Glibc
import Libevent
import LoopTesting
import Testing

@testable import Redis

/// A client and a real engine.
struct RedisClientTests {
    private static let code: StaticString = """
        #!lua name=test1
        redis.register_function('test1_get', function(k, a) return redis.call('GET', k[1]) end)
        """

    private static var library: RedisLibrary { RedisLibrary(name: ByteSlice("test1"), code: ByteSlice(code)) }

    @Test func `commands are answered in their order, however many are sent at once`() throws {
        let server = try RedisServer()
        var client: TestClient?
        try onLoop { loop in
            client = TestClient(server.address, on: loop)
            client?.start { client, _ in
                for number in 0..<1000 {
                    client.send(command("SET", "k\(number)", "\(number)"))
                    client.send(command("GET", "k\(number)")) { _ in if number == 999 { client.end() } }
                }
            }
        }
        #expect(client?.replies == (0..<1000).flatMap { ["+OK", "\"\($0)\""] })
        #expect(client?.events == ["ready"])
    }

    @Test func `a text of megabytes passes both ways`() throws {
        let server = try RedisServer()
        var (client, received): (TestClient?, ByteSlice?)
        let buffer = ByteBuffer(capacity: 5 << 20)
        for index in 0..<5 << 20 { buffer.append(UInt8(truncatingIfNeeded: index &* 7 >> 3)) }
        let text = buffer.copied()
        try onLoop { loop in
            client = TestClient(server.address, on: loop)
            client?.start { client, _ in
                let set = RedisCommand("SET")
                set.add(key: ByteSlice("k"))
                set.add(text)
                client.send(set)
                client.client.send(command("GET", "k")) { reply in
                    if case .value(.bulk(let text)) = reply { received = text }
                    client.end()
                }
            }
        }
        #expect(received == text)
    }

    @Test func `the client logs in, has a name, and uses its database`() throws {
        let server = try RedisServer("--user", "proxy", "on", ">a b", "~*", "+@all")
        var client: TestClient?
        try onLoop { loop in
            var address = server.address
            (address.user, address.password, address.database) = ("proxy", "a b", 3)
            client = TestClient(address, on: loop)
            client?.start { client, _ in
                client.send(command("ACL", "WHOAMI"))
                client.send(command("CLIENT", "GETNAME"))
                client.send(command("CLIENT", "INFO")) { _ in client.end() }
            }
        }
        #expect(client?.replies.prefix(2) == ["\"proxy\"", "\"coalesced\""])
        #expect(client?.replies.last?.contains(" db=3 ") == true && client?.replies.last?.contains(" resp=3") == true)
    }

    @Test(
        arguments: [
            ("proxy", "wrong", 0, "not connected: the engine refused HELLO: WRONGPASS"),
            (nil, nil, 0, "not connected: the engine refused HELLO: NOAUTH"),
            ("proxy", "right", 99, "not connected: the engine refused SELECT: ERR DB index is out of range"),
            ("reader", "right", 0, "not connected: the engine refused FUNCTION LIST: NOPERM"),
        ] as [(String?, String?, Int, String)])
    func `a refused set-up has the engine's words`(user: String?, password: String?, database: Int, event: String)
        throws
    {
        let server = try RedisServer(
            "--requirepass", "other", "--user", "proxy", "on", ">right", "~*", "+@all", "--user", "reader", "on",
            ">right", "~*", "+hello", "+client")
        var client: TestClient?
        try onLoop { loop in
            var address = server.address
            (address.user, address.password, address.database) = (user, password, database)
            client = TestClient(address, on: loop, library: Self.library)
            client?.start { client, _ in client.end() }
        }
        #expect(client?.events.count == 1 && client?.events.first?.hasPrefix(event) == true, "\(client?.events ?? [])")
    }

    @Test func `a key that was read is pushed when another writes it`() throws {
        let server = try RedisServer()
        var clients: [TestClient] = []
        try onLoop { loop in
            let (reader, writer) = (TestClient(server.address, on: loop), TestClient(server.address, on: loop))
            clients = [reader, writer]
            reader.onPush = { reader in
                guard reader.pushes.count < 2 else {
                    writer.client.stop()
                    return reader.end()
                }
                reader.send(command("GET", "k")) { _ in
                    writer.send(command("FUNCTION", "FLUSH")); writer.send(flushAll())
                }
            }
            reader.start { reader, _ in
                reader.send(command("GET", "k")) { _ in
                    writer.start { writer, _ in writer.send(command("SET", "k", "v")) }
                }
            }
        }
        #expect(clients.first?.pushes == ["push[\"invalidate\" [\"k\"]]", "push[\"invalidate\" null]"])
        #expect(clients.first?.replies == ["null", "\"v\""])
    }

    private func flushAll() -> RedisCommand { RedisCommand("FLUSHALL") }

    private func call() -> RedisCommand { command("FCALL", "test1_get", "1", "k") }

    @Test func `the functions are loaded before the client is ready, and again when they are gone`() throws {
        let server = try RedisServer()
        var client: TestClient?
        try onLoop { loop in
            client = TestClient(server.address, on: loop, library: Self.library)
            client?.start { client, _ in
                client.send(call())
                client.send(command("FUNCTION", "FLUSH"))
                client.send(call())
                client.send(call()) { _ in client.send(call()) { _ in client.end() } }
            }
        }
        let missing = "unavailable: functions-missing"
        #expect(client?.replies == ["null", "+OK", missing, missing, "null"])
    }

    @Test func `many clients load the functions at once, and all become ready`() throws {
        let server = try RedisServer()
        var clients: [TestClient] = []
        try onLoop { loop in
            clients = (0..<10).map { _ in TestClient(server.address, on: loop, library: Self.library) }
            for client in clients {
                client.start { client, _ in
                    client.send(call()) { _ in
                        guard clients.allSatisfy({ $0.replies.count == 1 }) else { return }
                        for client in clients { client.end() }
                    }
                }
            }
        }
        #expect(clients.allSatisfy { $0.events == ["ready"] && $0.replies == ["null"] })
    }

    @Test func `an engine that is killed and started again is used again, with its functions`() throws {
        let server = try RedisServer()
        var client: TestClient?
        var (states, again): ([Bool], [String]) = ([], [])
        try onLoop { loop in
            client = TestClient(server.address, on: loop, library: Self.library) { $0.shortestPause = millisecond }
            client?.start { client, event in
                switch client.events.count {
                case 1:
                    states.append(client.client.isAvailable)
                    server.stop()
                    client.send(call()) { again.append($0) }
                case 2:
                    states.append(client.client.isAvailable)
                    client.send(call()) { again.append($0) }
                    try? server.start()
                default:
                    guard event == "ready" else { return }
                    client.send(call()) {
                        again.append($0)
                        client.end()
                    }
                }
            }
        }
        #expect(states == [true, false])
        #expect(again.count == 3 && again.first?.hasPrefix("lost: ") == true, "\(again)")
        #expect(again.dropFirst() == ["unavailable: not-connected", "null"])
        #expect(client?.events.first == "ready" && client?.events.last == "ready")
        #expect(client?.events.dropFirst().first?.hasPrefix("lost: ") == true)
    }

    @Test func `a stopped engine costs a time limit a few times, then nothing until it goes on`() throws {
        let server = try RedisServer()
        var (client, last): (TestClient?, String?)
        try onLoop { loop in
            client = TestClient(server.address, on: loop) {
                ($0.timeout, $0.probeInterval, $0.stall) = (10 * millisecond, 20 * millisecond, 60 * second)
            }
            func sendUntilOpen(_ client: TestClient) {
                client.send(command("GET", "k")) {
                    guard $0 != "unavailable: breaker-open" else {
                        server.signal(SIGCONT)
                        return
                    }
                    sendUntilOpen(client)
                }
            }
            client?.start { client, event in
                switch event {
                case "ready":
                    server.signal(SIGSTOP)
                    sendUntilOpen(client)
                case "breaker closed":
                    // The engine is a process of its own, which may wait for the processor for longer than the timeout.
                    client.client.send(command("GET", "k"), until: client.loop.now + 5 * second) {
                        last = "\($0)"
                        client.end()
                    }
                default: break
                }
            }
        }
        #expect(client?.replies == Array(repeating: "late", count: 5) + ["unavailable: breaker-open"])
        #expect(last == "null")
        #expect(client?.events == ["ready", "breaker opened", "breaker closed"])
    }
}
