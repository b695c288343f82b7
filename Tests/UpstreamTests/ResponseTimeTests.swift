import Bytes
import HTTPSemantics
import Libevent
import Telemetry
import Testing

@testable import Upstream

/// What is counted and measured of an origin's responses.
@Suite(.timeLimit(.minutes(10))) struct ResponseTimeTests {
    private static let answer = ScriptedServer.Step.send("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nok")
    private let answered = ["head 404", "body ok", "end"]

    private func measured(_ asker: Asker, _ measure: UpstreamMeasure) -> (count: UInt64, sum: UInt64) {
        let durations = asker.metrics.read()[upstream: asker.pool.settings.name][measure]
        return (durations.count, durations.sum)
    }

    @Test func `heads are counted by class of status as they arrive, interim ones too`() throws {
        let asker = try Asker([
            [.request(), .send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n"), Self.answer],
            [.request(), .send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")],
            [.request(), .send("HTTP/1.1 2x0 Nonsense\r\n\r\n")],
        ])
        // Its connection is not used by the next, which runs at the same time.
        let (first, second) = (asker.exchange(), asker.exchange(asksForUpgrade: true))
        first.start()
        second.start()
        var ended = 0
        asker.run { event in
            if event == "end" || event == "upgraded" { ended += 1 }
            return ended == 2
        }
        let kept = try #require(asker.pool.takeIdle(at: asker.pool.places[0], mayRepeat: true))
        kept.end(.outOfUse)
        #expect(asker.ask(asker.exchange()) == ["failed head"])
        #expect(StatusClass.allCases.map { asker.counted(.responses($0)) } == [3, 0, 0, 1, 0])
        #expect(measured(asker, .firstByte).count == 2, "of final ones")
    }

    @Test func `a connection is measured once, and each of its responses`() throws {
        let asker = try Asker([[.request(), Self.answer, .request(), Self.answer]])
        for _ in 1...2 { #expect(asker.ask(asker.exchange()) == answered) }
        #expect(measured(asker, .connect).count == 1 && measured(asker, .firstByte).count == 2)
    }

    @Test func `a connection that fails is not measured`() throws {
        let asker = try Asker([])
        asker.servers[0].close()
        #expect(asker.ask(asker.exchange()) == ["failed connect"])
        #expect(measured(asker, .connect).count == 0 && measured(asker, .firstByte).count == 0)
    }

    @Test func `the time to the first byte runs from the request to the head`() throws {
        let asker = try Asker([[.request(), .pause, Self.answer]])
        asker.servers[0].onEvent = { connection in
            asker.loop.schedule(after: 60_000_000) { connection.goOn() }
        }
        #expect(asker.ask(asker.exchange()) == answered)
        // The timer's clock is up to 4 ms off.
        #expect(measured(asker, .firstByte).sum >= 50_000_000)
    }

    @Test func `a response before the whole request was sent has a time of zero`() throws {
        let asker = try Asker([[.request(), Self.answer]])
        #expect(asker.ask(asker.exchange(.post, content: .length)) == answered)
        #expect(measured(asker, .firstByte) == (1, 0))
    }
}
