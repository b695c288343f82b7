import HTTPSemantics
import Libevent
import Telemetry
import Testing

@testable import Upstream

/// Connections that are one client connection's own.
@Suite(.timeLimit(.minutes(10))) struct BoundConnectionsTests {
    private static let answer: [ScriptedServer.Step] = [
        .request(), .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ]
    private static let challenge: [ScriptedServer.Step] = [
        .request(), .send("HTTP/1.1 401 No\r\nWWW-Authenticate: NTLM\r\nContent-Length: 2\r\n\r\nno"),
    ]

    private func requests(_ asker: Asker) -> [Int] { asker.servers[0].connections.map(\.requests.count) }

    @Test func `an owner's requests go over one connection, and another's over others`() throws {
        let asker = try Asker([Self.challenge + Self.answer + Self.answer, Self.answer + Self.answer, Self.answer])
        let (one, other) = (BoundConnections(), BoundConnections())
        _ = asker.ask(asker.exchange(owner: one))
        _ = asker.ask(asker.exchange())
        _ = asker.ask(asker.exchange(.post, owner: one))
        #expect(requests(asker) == [2, 1])
        _ = asker.ask(asker.exchange(owner: one))
        // Nobody is known on one that nobody owns.
        _ = asker.ask(asker.exchange(owner: other))
        #expect(requests(asker) == [3, 2])
        _ = asker.ask(asker.exchange())
        #expect(requests(asker) == [3, 2, 1])
        one.close()
        other.close()
    }

    @Test func `a connection with a challenge for credentials is closed if it has no owner`() throws {
        let asker = try Asker([Self.challenge, Self.answer])
        #expect(asker.ask(asker.exchange()) == ["head 401", "body no", "end"])
        #expect(asker.metrics.read().upstreamConnectionsOpen == 0)
    }

    @Test func `bound connections end with their owner, one in use after its exchange`() throws {
        let asker = try Asker([Self.answer + [.request(), .pause] + Self.answer.dropFirst()], [Self.answer])
        let owner = BoundConnections()
        _ = asker.ask(asker.exchange(owner: owner))
        var paused: ScriptedConnection?
        asker.servers[0].onEvent = { connection in if !connection.hasEnded { paused = connection } }
        let exchange = asker.exchange(owner: owner)
        exchange.start()
        asker.run(untilTrue: { paused != nil })
        owner.close()
        #expect(asker.metrics.read().upstreamConnectionsOpen == 1)
        paused?.goOn()
        asker.run(untilTrue: { asker.events.last == "end" && asker.metrics.read().upstreamConnectionsOpen == 0 })
        owner.close()
    }

    @Test func `an idle bound connection is closed after the next exchange if its pool retires`() throws {
        let asker = try Asker([Self.answer + Self.answer], [Self.answer])
        let owner = BoundConnections()
        _ = asker.ask(asker.exchange(owner: owner))
        #expect(asker.metrics.read().upstreamConnectionsOpen == 1)
        asker.pool.retire()
        _ = asker.ask(asker.exchange(owner: owner))
        #expect(asker.metrics.read().upstreamConnectionsOpen == 0)
        owner.close()
    }
}
