import HTTPSemantics
import Libevent
import Telemetry
import Testing

@testable import Upstream

/// Which connections are kept, and for how long.
@Suite(.timeLimit(.minutes(1))) struct UpstreamPoolTests {
    private static let answer: [ScriptedServer.Step] = [
        .request(), .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ]

    private func idle(_ asker: Asker) -> [Int] { asker.pool.serverStates.map(\.idle) }

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

    @Test func `no more connections are kept than there may be`() throws {
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

    @Test func `servers are asked in turn, each on its own connections`() throws {
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
    func `a connection that is over, or not to be trusted, is not kept`(response: String) throws {
        let asker = try Asker([[.request(), .send(response)]])
        #expect(asker.ask(asker.exchange()).last == "end")
        #expect(idle(asker) == [0])
        #expect(asker.metrics.read().upstreamConnectionsOpen == 0)
    }

    @Test(arguments: [[ScriptedServer.Step.close], [.send("HTTP/1.1 408 Request Timeout\r\n\r\n")]])
    func `an idle connection that is closed, or speaks, is forgotten`(end: [ScriptedServer.Step]) throws {
        let asker = try Asker([Self.answer + [.pause] + end, Self.answer])
        _ = asker.ask(asker.exchange())
        #expect(idle(asker) == [1])
        asker.servers[0].connections[0].goOn()
        asker.run(untilTrue: { idle(asker) == [0] })
        // Nobody was told, and the next request takes a new one.
        #expect(asker.ask(asker.exchange()) == ["head 200", "body ok", "end"])
        #expect(asker.counted(.retries) == 0)
    }

    @Test func `a pool that is going away closes its connections, those in use after their exchange`() throws {
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
