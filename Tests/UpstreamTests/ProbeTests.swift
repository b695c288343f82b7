import Bytes
import HTTPSemantics
import Libevent
import Telemetry
import Testing

@testable import Upstream

/// The copy of a request that asks a place whether it is back, and what becomes of the requests that were in flight as
/// the place was ejected.
@Suite(.timeLimit(.minutes(10))) struct ProbeTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    private static let answer: [ScriptedServer.Step] = [.request(), .send(ok)]
    private static let refusal: [ScriptedServer.Step] = [
        .request(), .send("HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), .close,
    ]
    private let answered = ["head 200", "body ok", "end"]

    /// An asker of two servers, the first of which is ejected, for a moment that is over. Its next connection follows
    /// `script`.
    private func asker(_ script: [ScriptedServer.Step]) throws -> Asker {
        let asker = try Asker([Self.refusal, script], [Self.answer + Self.answer + Self.answer + Self.answer]) {
            $0.maxFailures = 1
            $0.failureCooldown = .milliseconds(1)
        }
        #expect(asker.ask(asker.exchange()) == answered)
        #expect(asker.inUse == [false, true] && asker.counted(.retries) == 1)
        asker.loop.schedule(after: 5_000_000) { asker.loop.stop() }
        asker.run()
        return asker
    }

    private func get(_ fields: String, _ asker: Asker) -> Exchange {
        let head = ByteSlice("GET /x HTTP/1.1\r\n\(fields)\r\n")
        return Exchange(UpstreamRequest(method: .get, head: head), pool: asker.pool, handler: asker)
    }

    @Test func `the request goes to a server in use, and beside it a copy without credentials is the probe`() throws {
        let asker = try asker([.request(), .pause, .send(Self.ok), .request()])
        let fields = "Host: a\r\nCookie: a=b\r\nAUTHORIZATION: Basic x\r\nRange: bytes=0-1\r\n"
        #expect(asker.ask(get(fields, asker)) == answered)
        asker.run(untilTrue: { asker.servers[0].requests.count == 2 })
        #expect(asker.servers[1].requests.last == "GET /x HTTP/1.1\r\n\(fields)\r\n")
        #expect(asker.servers[0].requests[1] == "GET /x HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\n\r\n")
        // It is the only one.
        #expect(asker.ask(asker.exchange()) == answered)
        #expect(asker.inUse[0] == false && asker.servers[0].connections.count == 2)
        let probe = asker.servers[0].connections[1]
        probe.goOn()
        asker.run(untilTrue: { asker.inUse[0] })
        asker.run(untilTrue: { probe.hasEnded })
        #expect(asker.counted(.retries) == 1 && asker.events == answered)
        #expect(asker.pool.places.allSatisfy { $0.probe == nil })
    }

    @Test(arguments: [
        [ScriptedServer.Step.request(), .close], refusal, [.request(), .send("nonsense\r\n\r\n")],
        [.request(), .send("HTTP/1.1 103 Early Hints\r\n\r\n"), .close],
    ])
    func `a copy that fails is not sent again, and no client learns of it`(script: [ScriptedServer.Step]) throws {
        let asker = try asker(script)
        let former = try #require(asker.group.states(at: 0)[0].nextProbe)
        #expect(asker.ask(asker.exchange()) == answered)
        asker.run(untilTrue: { asker.group.states(at: 0)[0].condition == .ejected })
        let next = try #require(asker.group.states(at: 0)[0].nextProbe)
        #expect(next > former && asker.servers[0].connections.count == 2)
        asker.run(untilTrue: { asker.pool.places.allSatisfy { $0.probe == nil } })
        #expect(asker.counted(.retries) == 1 && asker.servers[1].requests.count == 2 && asker.events == answered)
    }

    @Test func `a copy of which no connection comes is not sent elsewhere`() throws {
        let asker = try asker([])
        asker.servers[0].close()
        #expect(asker.ask(asker.exchange()) == answered)
        asker.run(untilTrue: { asker.pool.places.allSatisfy { $0.probe == nil } })
        #expect(asker.counted(.failures(.connect)) == 1 && asker.group.states(at: 0)[0].condition == .ejected)
        #expect(asker.servers[1].requests.count == 2 && asker.events == answered)
    }

    @Test func `a copy takes no connection that was idle, since it is not sent again if that is dead`() throws {
        let asker = try Asker([Self.answer + [.request(), .close], Self.answer], [Self.answer + Self.answer]) {
            $0.failureCooldown = .milliseconds(1)
        }
        for _ in 0..<2 { #expect(asker.ask(asker.exchange()) == answered) }
        let place = asker.group.entries[0].place
        for _ in 0..<3 { _ = asker.group.failed(place, .status(503), isOnly: false, at: asker.loop.now) }
        asker.loop.schedule(after: 5_000_000) { asker.loop.stop() }
        asker.run()
        #expect(asker.ask(asker.exchange()) == answered)
        asker.run(untilTrue: { asker.inUse[0] })
        #expect(asker.servers[0].connections.map(\.requests.count) == [1, 1])
    }

    @Test func `a copy ends with its pool, without a verdict`() throws {
        let asker = try asker([.request(), .pause])
        #expect(asker.ask(asker.exchange()) == answered)
        asker.run(untilTrue: { asker.servers[0].requests.count == 2 })
        #expect(asker.group.states(at: 0)[0].condition == .probing)
        asker.pool.retire()
        #expect(asker.group.states(at: 0)[0].condition == .ejected && asker.pool.places[0].probe == nil)
        asker.run(untilTrue: { asker.servers[0].connections[1].hasEnded })
        #expect(asker.events == answered)
    }

    @Test func `a copy ends when its server is drained`() throws {
        let asker = try asker([.request(), .pause])
        #expect(asker.ask(asker.exchange()) == answered)
        asker.run(untilTrue: { asker.servers[0].requests.count == 2 })
        #expect(asker.group.drain(.server(asker.pool.settings.servers[0].location), true, at: asker.loop.now))
        asker.pool.update()
        asker.run(untilTrue: { asker.servers[0].connections[1].hasEnded })
        #expect(asker.pool.places[0].probe == nil)
    }

    @Test(arguments: [
        (HTTPSemantics.Method.get, UpstreamRequest.Content.none, true, false), (.post, .none, false, false),
        (.otherSafe, .length, false, false), (.get, .none, false, true), (.otherSafe, .none, true, false),
    ])
    func `safe requests are copied that are here as a whole`(
        method: HTTPSemantics.Method, content: UpstreamRequest.Content, isCopied: Bool, asksForUpgrade: Bool
    ) {
        let request = UpstreamRequest(method: method, head: .empty, content: content, asksForUpgrade: asksForUpgrade)
        #expect(request.mayBeCopied == isCopied)
    }

    // MARK: In flight at the ejection

    /// Asks `count` times at once, and waits for the ends.
    private func ends(of count: Int, _ asker: Asker) -> [String] {
        let (before, exchanges) = (asker.ends.count, (0..<count).map { _ in asker.exchange() })
        for exchange in exchanges { exchange.start() }
        asker.run(untilTrue: { asker.ends.count == before + count })
        return Array(asker.ends.dropFirst(before))
    }

    private func asker(_ first: [ScriptedServer.Step], _ second: [ScriptedServer.Step]) throws -> Asker {
        try Asker(Array(repeating: first, count: 200), Array(repeating: second, count: 200)) {
            $0.firstByteTimeout = .milliseconds(200)
            $0.maxIdleConnections = 0
        }
    }

    @Test func `requests in flight at a server as it is ejected are sent to another one, however many they are`() throws
    {
        let asker = try asker([.request(), .pause], Self.answer)
        let ends = ends(of: 120, asker)
        #expect(ends == Array(repeating: "end", count: 120))
        #expect(asker.counted(.retries) == 60 && asker.group.events[.refusedRetry] == 0)
        // The budget is left for others.
        #expect((0..<RetryBudget.alwaysAllowed - 2).allSatisfy { _ in asker.group.budget.take(at: asker.loop.now) })
    }

    @Test func `if all servers hang, what was in flight at one is sent twice, once, and nothing else is`() throws {
        let asker = try asker([.request(), .pause], [.request(), .pause])
        #expect(ends(of: 60, asker) == Array(repeating: "failed head-timeout", count: 60))
        let (seen, again) = (asker.servers.map(\.requests.count).reduce(0, +), asker.counted(.retries))
        // 30 of the first server, and those that failed of the second before the first was ejected.
        #expect((90...93).contains(seen) && seen == 60 + Int(again), "\(seen)")
        #expect(ends(of: 60, asker) == Array(repeating: "failed head-timeout", count: 60))
        #expect(asker.servers.map(\.requests.count).reduce(0, +) == seen + 60 && asker.counted(.retries) == again)
    }
}

extension Asker {
    /// How each exchange ended.
    fileprivate var ends: [String] { events.filter { $0.hasPrefix("end") || $0.hasPrefix("failed") } }
}
