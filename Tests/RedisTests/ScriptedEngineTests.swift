import Bytes
import Glibc
import Libevent
import LoopTesting
import NameServing
import Testing

@testable import Redis

/// A client and an engine that does not do what it should.
struct ScriptedEngineTests {
    private func test(
        _ change: @escaping (inout RedisSettings) -> Void = { _ in },
        answer: @escaping (Conversation, [String]) -> Void = { _, _ in },
        prepare: (ScriptedEngine) -> Void = { _ in },
        _ onEvent: @escaping (TestClient, String, ScriptedEngine) -> Void
    ) throws -> (TestClient, ScriptedEngine) {
        var (client, engine): (TestClient?, ScriptedEngine?)
        try onLoop { loop in
            let made = try ScriptedEngine(on: loop, answer: answer)
            prepare(made)
            (client, engine) = (TestClient(made.address, on: loop, change), made)
            client?.start { onEvent($0, $1, made) }
        }
        return (try #require(client), try #require(engine))
    }

    @Test func `commands of one iteration leave in one write`() throws {
        let (client, engine) = try test(
            answer: { conversation, command in
                if command[0] == "PING" { conversation.say(String(repeating: "+OK\r\n", count: 101)) }
            }
        ) { client, _, _ in
            for number in 0..<100 { client.send(command("GET", "k\(number)")) }
            client.send(command("PING")) { _ in client.end() }
        }
        #expect(engine.conversations.first?.reads.count == 2, "the set-up, and the commands")
        #expect(engine.conversations.first?.commands.count == 101 && client.replies.count == 101)
    }

    @Test func `a late reply is dropped, and the next one belongs to the next command`() throws {
        let (client, _) = try test({ $0.timeout = 20 * millisecond }, answer: { _, _ in }) { client, _, engine in
            client.send(command("GET", "a")) { _ in
                client.client.send(command("GET", "b"), until: client.loop.now + 5 * second) { reply in
                    #expect("\(reply)" == "+second")
                    client.end()
                }
                engine.conversations[0].say("+first\r\n")
                engine.conversations[0].say("+second\r\n")
            }
        }
        #expect(client.replies == ["late"])
    }

    @Test func `each command has its own deadline`() throws {
        var order: [String] = []
        // Deadlines that are over at the same look are told in the order of the commands, so a busy machine needs room
        // between them.
        _ = try test { client, _, _ in
            for (name, time) in [("long", 1600), ("short", 1), ("middle", 800)] as [(String, Int64)] {
                client.client.send(command("GET", "a"), until: client.loop.now + time * millisecond) { reply in
                    order.append("\(name) \(reply)")
                    if order.count == 3 { client.end() }
                }
            }
        }
        #expect(order == ["short late", "middle late", "long late"])
    }

    @Test(
        arguments: [
            (
                "HTTP/1.1 400 Bad Request\r\n",
                "the engine does not speak RESP3: byte 21 of what the engine sent: no value of RESP3 begins with 'H'"
            ),
            ("$5\r\nab", "the engine closed the connection"),
            ("+one\r\n+two\r\n+three\r\n", "the engine answered what it was not asked"),
            (
                "$67108865\r\n",
                "the engine does not speak RESP3: byte 22 of what the engine sent: a value with more than 67108864 bytes of text"
            ),
        ])
    func `nonsense ends the connection, and all commands fail once`(text: String, why: String) throws {
        let (client, engine) = try test(answer: { conversation, command in
            guard command[1] == "b" else { return }
            conversation.say(text)
            if text.hasPrefix("$5") { conversation.close() }
        }) { client, event, _ in
            if event != "ready" { return client.loop.atIterationEnd { client.end() } }
            client.send(command("GET", "a"))
            client.send(command("GET", "b"))
        }
        #expect(client.events == ["ready", "lost: \(why)"])
        let answered = text.hasPrefix("+") ? ["+one", "+two"] : ["lost: \(why)", "lost: \(why)"]
        #expect(client.replies == answered)
        #expect(engine.conversations.count == 1)
    }

    @Test func `a reply that breaks off belongs to no command`() throws {
        let (client, _) = try test(
            { $0.shortestPause = millisecond },
            answer: { conversation, command in
                conversation.say(command[1] == "a" ? "$3\r\nabc\r\n$3\r\nab" : "+whole\r\n")
                if command[1] == "a" { conversation.close() }
            }
        ) { client, event, _ in
            guard event == "ready" else { return }
            if client.events.count == 1 {
                client.send(command("GET", "a"))
                client.send(command("GET", "b"))
            } else {
                client.send(command("GET", "c")) { _ in client.end() }
            }
        }
        #expect(client.replies == ["\"abc\"", "lost: the engine closed the connection", "+whole"])
    }

    @Test func `an engine that answers nothing for too long is connected to again`() throws {
        let (client, _) = try test({
            ($0.timeout, $0.stall, $0.shortestPause) = (5 * millisecond, 40 * millisecond, millisecond)
        }) { client, event, _ in
            switch client.events.count {
            case 1: client.send(command("GET", "a"))
            case 3: client.end()
            default: break
            }
        }
        #expect(client.events == ["ready", "lost: the engine has answered nothing for too long", "ready"])
        #expect(client.replies == ["late"])
    }

    @Test func `a set-up without an end is given up`() throws {
        let (client, engine) = try test(
            { ($0.setUpLimit, $0.shortestPause) = (20 * millisecond, millisecond) },
            prepare: {
                $0.answerSetUp = { conversation, command in if command[0] == "HELLO" { conversation.say("%0\r\n") } }
            }
        ) { client, _, engine in
            if client.events.count == 2 { client.loop.atIterationEnd { client.end() } }
        }
        let late = "not connected: the engine did not answer in time when the connection was prepared"
        #expect(client.events == [late, late])
        #expect(engine.conversations.first?.hasEnded == true)
    }

    @Test func `nothing is sent while there is no connection, and all are told at once`() throws {
        var (client, replies): (TestClient?, [String]) = (nil, [])
        try onLoop { loop in
            let engine = try ScriptedEngine(on: loop)
            let address = engine.address
            engine.close()
            client = TestClient(address, on: loop)
            var isInside = true
            client?.client.send(command("GET", "a")) {
                #expect(!isInside)
                replies.append("\($0)")
            }
            isInside = false
            client?.start { client, _ in
                client.send(command("GET", "b")) {
                    replies.append($0)
                    client.end()
                }
            }
        }
        #expect(replies == ["unavailable: not-connected", "unavailable: not-connected"])
        #expect(client?.events == ["not connected: no connection: Connection refused"])
    }

    @Test func `a socket that is not there is waited for`() throws {
        let path = "/tmp/redis-tests-\(UInt64.random(in: 0 ... .max)).sock"
        var (client, engine): (TestClient?, ScriptedEngine?)
        try onLoop { loop in
            client = TestClient(RedisAddress(.unix(path: path)), on: loop) { $0.shortestPause = millisecond }
            client?.start { client, event in
                if event == "ready" { return client.end() }
                guard engine == nil else { return }
                engine = try? ScriptedEngine(on: loop, at: .unix(path: path))
            }
        }
        #expect(client?.events.first == "not connected: no connection: No such file or directory")
        #expect(client?.events.last == "ready")
        engine?.close()
    }

    @Test func `what waits is bounded, in commands and in bytes`() throws {
        let (client, _) = try test({ ($0.mostAwaited, $0.mostUnsent) = (3, 200) }) { client, _, _ in
            client.send(command("ECHO", String(repeating: "x", count: 300)))
            client.send(command("GET", "a"))
            client.send(command("ECHO", String(repeating: "x", count: 200)))
            client.send(command("GET", "b"))
            client.send(command("GET", "c"))
            client.send(command("GET", "d")) { _ in client.end() }
        }
        let full = "unavailable: full"
        #expect(client.replies.prefix(3) == [full, full, full])
        #expect(client.replies.dropFirst(3).allSatisfy { $0 == "lost: the connection is not needed any more" })
        #expect(client.replies.count == 6)
    }

    @Test func `stopping calls every completion, and no event follows`() throws {
        let (client, _) = try test { client, _, _ in
            for _ in 0..<10 { client.send(command("GET", "a")) }
            client.end()
            #expect(client.replies.count == 10)
            client.send(command("GET", "b"))
        }
        #expect(client.replies.count == 11 && client.replies.last == "unavailable: not-connected")
        #expect(client.events == ["ready"])
    }

    @Test func `a completion may stop the client, in the middle of the replies`() throws {
        let (client, _) = try test(answer: { conversation, command in
            if command[1] == "9" { conversation.say(String(repeating: "+OK\r\n", count: 10)) }
        }) { client, _, _ in
            for number in 0..<10 {
                client.send(command("GET", "\(number)")) { _ in if number == 4 { client.end() } }
            }
        }
        #expect(client.replies.count == 10 && client.replies.prefix(5).allSatisfy { $0 == "+OK" })
        #expect(client.replies.dropFirst(5).allSatisfy { $0.hasPrefix("lost: ") })
    }

    @Test func `an engine that is always late is asked once in a while, until it is in time`() throws {
        var pings = 0
        // The fourth probe must be answered within the timeout, also on a busy machine.
        let (client, engine) = try test(
            { ($0.timeout, $0.probeInterval, $0.stall) = (200 * millisecond, 10 * millisecond, 60 * second) },
            answer: { conversation, command in
                guard command[0] == "PING" else { return }
                pings += 1
                if pings == 4 { conversation.say(String(repeating: "+OK\r\n", count: 5 + 4)) }
            }
        ) { client, event, _ in
            switch event {
            case "ready": for _ in 0..<5 { client.send(command("GET", "a")) }
            case "breaker opened":
                #expect(client.client.condition == .breakerOpen && !client.client.isAvailable)
            case "breaker closed": client.end()
            default: break
            }
        }
        #expect(client.events == ["ready", "breaker opened", "breaker closed"] && pings == 4)
        #expect(engine.conversations.count == 1 && client.replies == Array(repeating: "late", count: 5))
    }

    @Test func `an engine that only patient commands wait for is too slow for the others`() throws {
        // Answers everything, each 30 ms late.
        let (client, _) = try test(
            { ($0.timeout, $0.probeInterval) = (10 * millisecond, 60 * second) },
            answer: { conversation, _ in
                conversation.loop.schedule(after: 30 * millisecond) { conversation.say("+OK\r\n") }
            }
        ) { client, event, _ in
            guard event == "ready" else { return client.end() }
            func look() {
                client.send(command("GET", "a")) { reply in
                    guard reply == "late", client.replies.count < 20 else { return client.end() }
                    client.client.send(command("GET", "b"), until: client.loop.now + 5 * second) { reply in
                        guard "\(reply)" == "+OK" else { return }
                        look()
                    }
                }
            }
            look()
        }
        #expect(client.events == ["ready", "breaker opened"])
        #expect(client.replies == Array(repeating: "late", count: 5))
    }

    @Test func `commands that fail with their connection open the breaker, and the next connection is asked first`()
        throws
    {
        let (client, engine) = try test(
            { ($0.shortestPause, $0.probeInterval) = (millisecond, 60 * second) },
            answer: { conversation, command in
                if command[0] == "PING" { conversation.say("+PONG\r\n") } else { conversation.close() }
            }
        ) { client, event, _ in
            switch event {
            case "ready" where client.events.count == 1: for _ in 0..<5 { client.send(command("GET", "a")) }
            case "breaker closed": client.end()
            default: break
            }
        }
        #expect(
            client.events == [
                "ready", "lost: the engine closed the connection", "breaker opened", "ready", "breaker closed",
            ])
        #expect(engine.conversations.last?.commands == [["PING"]])
    }

    @Test(arguments: [
        (
            "-LOADING Redis is loading the dataset in memory\r\n",
            "loading: LOADING Redis is loading the dataset in memory", true
        ),
        (
            "-READONLY You can't write against a read only replica.\r\n",
            "readOnly: READONLY You can't write against a read only replica.", true
        ),
        ("-CLUSTERDOWN The cluster is down\r\n", "clusterDown: CLUSTERDOWN The cluster is down", true),
        ("-MASTERDOWN Link with MASTER is down\r\n", "masterDown: MASTERDOWN Link with MASTER is down", true),
        ("-BUSY Redis is busy\r\n", "busy: BUSY Redis is busy", true),
        ("-OOM command not allowed\r\n", "outOfMemory: OOM command not allowed", false),
        ("-OOMPH\r\n", "error: OOMPH", false),
        ("-NOPERM x\r\n", "noPermission: NOPERM x", false),
        ("-ERR unknown\r\n", "error: ERR unknown", false),
        ("!8\r\nERR\r\nbad\r\n", "error: ERR\r\nbad", false),
        ("-MOVED 3999 127.0.0.1:6381\r\n", "moved 3999 to 127.0.0.1:6381", false),
        ("-ASK 16383 ::1:6381\r\n", "ask 16383 to ::1:6381", false),
        ("-MOVED 16384 h:1\r\n", "error: MOVED 16384 h:1", false),
        ("-MOVED 1\r\n", "error: MOVED 1", false),
        ("-NOSCRIPT No matching script.\r\n", "function unknown", false),
        ("-ERR Function not found\r\n", "function unknown", false),
        ("+OK\r\n", "+OK", false),
    ])
    func `an error has a name, and some count for the breaker`(text: String, reply: String, opens: Bool) throws {
        let (client, _) = try test(answer: { conversation, _ in conversation.say(text) }) { client, event, _ in
            guard event == "ready" else { return }
            for number in 0..<5 {
                client.send(command("GET", "a")) { _ in if number == 4 { client.end() } }
            }
        }
        #expect(client.replies == Array(repeating: reply, count: 5))
        #expect(client.events == (opens ? ["ready", "breaker opened"] : ["ready"]))
    }

    /// A hosts file, and a name server that knows no name.
    private func withHosts(_ text: String, _ body: (Resolver.Settings) throws -> Void) throws {
        let path = "/tmp/redis-tests-hosts-\(UInt64.random(in: 0 ... .max))"
        let nameServer = try NameServer { _ in .code(3) }
        defer { nameServer.stop() }
        Self.write(text, at: path)
        Self.write("nameserver 127.0.0.1:\(nameServer.port)\n", at: path + "-servers")
        defer { for name in [path, path + "-servers"] { _ = unsafe unlink(name) } }
        var settings = Resolver.Settings()
        (settings.hosts, settings.resolvConf) = (path, path + "-servers")
        try body(settings)
    }

    private static func write(_ text: String, at path: String) {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        let bytes = Array(text.utf8)
        let written = unsafe Glibc.write(file, bytes, bytes.count)
        #expect(written == bytes.count)
        close(file)
    }

    @Test func `a name is looked up for each attempt, and its addresses are tried in turn`() throws {
        var (client, engine): (TestClient?, ScriptedEngine?)
        try withHosts("127.0.0.2 engine.test\n127.0.0.3 engine.test\n127.0.0.1 engine.test\n") { settings in
            try onLoop { loop in
                let made = try ScriptedEngine(on: loop)
                engine = made
                let address = RedisAddress(.tcp(host: "engine.test", port: made.port))
                client = TestClient(address, on: loop, resolver: settings) { $0.shortestPause = millisecond }
                client?.start { client, event in if event == "ready" { client.end() } }
            }
        }
        let refused = "not connected: no connection: Connection refused"
        #expect(client?.events == [refused, refused, "ready"])
        _ = engine
    }

    @Test func `a name without an address is asked for again`() throws {
        var client: TestClient?
        try withHosts("") { settings in
            try onLoop { loop in
                client = TestClient(
                    RedisAddress(.tcp(host: "engine.test", port: 1)), on: loop, resolver: settings
                ) { $0.shortestPause = millisecond }
                client?.start { client, event in if client.events.count == 2 { client.end() } }
            }
        }
        let unknown = "not connected: the name has no address"
        #expect(client?.events == [unknown, unknown])
    }
}
