import HTTPSemantics
import Libevent
import Telemetry
import Testing

@testable import Upstream

/// Which connections are kept, and for how long.
@Suite(.timeLimit(.minutes(10))) struct UpstreamPoolTests {
    private static let answer: [ScriptedServer.Step] = [
        .request(), .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ]

    private func idle(_ asker: Asker) -> [Int] { asker.pool.connections.map(\.idle) }

    /// Two exchanges at the same time.
    private func askTwice(_ asker: Asker) {
        let exchanges = [asker.exchange(), asker.exchange()]
        exchanges.forEach { $0.start() }
        var ended = 0
        asker.run { event in
            if event == "end" { ended += 1 }
            return ended == 2
        }
    }

    @Test func `no more connections are kept than permitted`() throws {
        let asker = try Asker([Self.answer, Self.answer]) { $0.maxIdleConnections = 1 }
        askTwice(asker)
        #expect(idle(asker) == [1])
        #expect(asker.metrics.read().upstreamConnectionsOpen == 1)
    }

    @Test func `the connection used last is used next`() throws {
        let asker = try Asker([Self.answer, Self.answer + Self.answer])
        askTwice(asker)
        let last = asker.servers[0].connections.map(\.requests.count)
        #expect(last == [1, 1])
        _ = asker.ask(asker.exchange())
        #expect(idle(asker) == [2])
        #expect(asker.servers[0].connections.map(\.requests.count).sorted() == [1, 2])
    }

    @Test func `servers are used in turn, each on its own connections`() throws {
        let twice = Self.answer + Self.answer
        let asker = try Asker([twice], [twice])
        for _ in 1...4 { _ = asker.ask(asker.exchange()) }
        #expect(asker.servers.map(\.requests.count) == [2, 2])
        #expect(idle(asker) == [1, 1])
        #expect(asker.metrics.read()[.upstreamConnects] == 2)
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more",
    ])
    func `a connection that has ended or is not trusted is not kept`(response: String) throws {
        let asker = try Asker([[.request(), .send(response)]])
        #expect(asker.ask(asker.exchange()).last == "end")
        #expect(idle(asker) == [0])
        #expect(asker.metrics.read().upstreamConnectionsOpen == 0)
    }

    @Test(arguments: [[ScriptedServer.Step.close], [.send("HTTP/1.1 408 Request Timeout\r\n\r\n")]])
    func `an idle connection that is closed, or sends bytes, is forgotten`(end: [ScriptedServer.Step]) throws {
        let asker = try Asker([Self.answer + [.pause] + end, Self.answer])
        _ = asker.ask(asker.exchange())
        #expect(idle(asker) == [1])
        asker.servers[0].connections[0].goOn()
        asker.run(untilTrue: { idle(asker) == [0] })
        // Nobody was told, and the next request takes a new one.
        #expect(asker.ask(asker.exchange()) == ["head 200", "body ok", "end"])
        #expect(asker.counted(.retries) == 0)
    }

    @Test(arguments: ["timeout=0", "timeout=5, max=0"])
    func `a connection whose server permits no more requests is not kept`(says: String) throws {
        let asker = try Asker([
            [.request(), .send("HTTP/1.1 200 OK\r\nKeep-Alive: \(says)\r\nContent-Length: 2\r\n\r\nok")]
        ])
        #expect(asker.ask(asker.exchange()).last == "end")
        #expect(idle(asker) == [0])
    }

    @Test(arguments: ["HTTP/1.1 200 OK\r\n", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"])
    func `a connection is closed before the time that its server states is over`(start: String) throws {
        let asker = try Asker([[.request(), .send("\(start)Keep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok")]])
        #expect(asker.ask(asker.exchange()).last == "end")
        let kept = asker.loop.now
        #expect(idle(asker) == [1])
        asker.run(untilTrue: { idle(asker) == [0] })
        asker.run(untilTrue: { asker.servers[0].connections[0].hasEnded })
        #expect(asker.loop.now - kept >= 700_000_000)
    }

    @Test
    func `a request that cannot be sent twice takes no connection that has been idle for too long`()
        throws
    {
        let asker = try Asker([Self.answer + [.pause, .close], Self.answer, Self.answer + Self.answer])
        _ = asker.ask(asker.exchange())
        // It is closed at once, which teaches.
        asker.servers[0].connections[0].goOn()
        asker.run(untilTrue: { idle(asker) == [0] })
        _ = asker.ask(asker.exchange())
        asker.loop.schedule(after: 300_000_000) { asker.loop.stop() }
        asker.run()
        #expect(asker.ask(asker.exchange(.post)).last == "end")
        #expect(asker.servers[0].connections.count == 3 && idle(asker) == [2])
        // One that can be takes whichever there is.
        asker.loop.schedule(after: 300_000_000) { asker.loop.stop() }
        asker.run()
        #expect(asker.ask(asker.exchange()).last == "end")
        #expect(asker.servers[0].connections.count == 3)
    }

    @Test func `idle connections that unsafe requests may not use prove how long they last`() throws {
        let (first, others) = (Self.answer + [.pause, .close], Self.answer + Self.answer + Self.answer)
        let asker = try Asker([first] + Array(repeating: others, count: 20))
        _ = asker.ask(asker.exchange(.post))
        asker.servers[0].connections[0].goOn()
        asker.run(untilTrue: { idle(asker) == [0] })
        for _ in 1...ServerPatience.enoughToDoubt + 3 {
            #expect(asker.ask(asker.exchange(.post)).last == "end")
            asker.loop.schedule(after: 30_000_000) { asker.loop.stop() }
            asker.run()
        }
        #expect(asker.servers[0].connections.count == 1 + ServerPatience.enoughToDoubt + 1)
    }

    @Test func `a closing pool closes its connections, those in use after their exchange`() throws {
        let asker = try Asker([Self.answer, [.request(), .pause] + Self.answer.dropFirst()])
        let (first, second) = (asker.exchange(), asker.exchange())
        first.start()
        second.start()
        var paused: ScriptedConnection?
        asker.servers[0].onEvent = { connection in if !connection.hasEnded { paused = connection } }
        asker.run(untilTrue: { paused != nil && idle(asker) == [1] })
        asker.pool.retire()
        #expect(idle(asker) == [0])
        #expect(asker.metrics.read().upstreamConnectionsOpen == 1)
        paused?.goOn()
        asker.run(untilTrue: { asker.events.count { $0 == "end" } == 2 })
        #expect(asker.metrics.read().upstreamConnectionsOpen == 0)
    }
}
