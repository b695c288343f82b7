import Bytes
import Glibc
import HTTPSemantics
import Libevent
import Telemetry
import Testing

@testable import Upstream

/// One request and its response, with servers that follow a script.
@Suite(.timeLimit(.minutes(10))) struct ExchangeTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    private static let answer: [ScriptedServer.Step] = [.request(), .send(ok)]
    private let answered = ["head 200", "body ok", "end"]

    @Test func `the messages of a server are reported in order`() throws {
        let asker = try Asker([
            [
                .request(),
                .send(
                    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                ),
                .send("3\r\nabc\r\n0\r\nDigest: x\r\n\r\n"),
            ]
        ])
        let events = asker.ask(asker.exchange())
        #expect(events == ["interim 103", "head 200", "body abc", "end with Digest: x\r\n"])
        #expect(asker.servers[0].requests == ["GET / HTTP/1.1\r\n\r\n"])
    }

    /// Of a Unix socket; nothing is left at it when nobody listens there any more.
    private let path = "/tmp/coalesced-exchange.\(getpid()).\(UInt32.random(in: 0...UInt32.max))"
    /// One connection fills its queue.
    private var small: Listener.Settings {
        var settings = Listener.Settings()
        settings.backlog = 0
        return settings
    }

    @Test func `a Unix socket whose queue is full is tried again until there is room`() throws {
        let asker = try Asker { [path] in $0.servers = [.unix(path: path)] }
        // It accepts once the loop runs.
        let server = try ScriptedServer(on: asker.loop, [[.pause], Self.answer], at: .unix(path: path), small)
        let first = try Socket(connectingTo: .unix(path: path), on: asker.loop)
        let events = asker.ask(asker.exchange())
        #expect(events == answered)
        #expect(server.requests == ["GET / HTTP/1.1\r\n\r\n"] && !first.isClosed)
    }

    @Test func `a Unix socket whose queue stays full is given up at the timeout`() throws {
        let asker = try Asker { [path] in
            $0.servers = [.unix(path: path)]
            $0.connectTimeout = .milliseconds(120)
        }
        let server = try ListeningSocket(.unix(path: path), small)
        let first = try Socket(connectingTo: .unix(path: path), on: asker.loop)
        let events = asker.ask(asker.exchange())
        #expect(events == ["failed connect-timeout"])
        withExtendedLifetime((server, first)) {}
    }

    @Test func `an exchange does not wait for a full server while another takes the request`() throws {
        let asker = try Asker([Self.answer]) { [path] in $0.servers.insert(.unix(path: path), at: 0) }
        let server = try ListeningSocket(.unix(path: path), small)
        let first = try Socket(connectingTo: .unix(path: path), on: asker.loop)
        let events = asker.ask(asker.exchange(.post))
        #expect(events == answered && asker.servers[0].requests.count == 1)
        #expect(asker.counted(.failures(.connectTimeout)) == 0 && asker.counted(.retries) == 0)
        #expect(asker.inUse[0])
        withExtendedLifetime((server, first)) {}
    }

    @Test func `an exchange waits for a full server if no other takes the request`() throws {
        let asker = try Asker { [path] in $0.servers = [.unix(path: path), .unix(path: path + ".none")] }
        let server = try ScriptedServer(on: asker.loop, [[.pause], Self.answer], at: .unix(path: path), small)
        let first = try Socket(connectingTo: .unix(path: path), on: asker.loop)
        let events = asker.ask(asker.exchange())
        #expect(events == answered)
        #expect(server.requests == ["GET / HTTP/1.1\r\n\r\n"] && !first.isClosed)
    }

    @Test func `an error of a Unix socket is reported with its remedy`() {
        func detail(_ code: Int32, _ address: SocketAddress) -> String {
            UpstreamError(cannotConnectTo: address, SystemError(.connect, code: code)).detail
        }
        #expect(
            detail(EACCES, .unix(path: "/a"))
                == "unix:/a: Permission denied; this program runs as uid \(geteuid()), gid \(getegid()), which needs write permission on the socket, and search permission on the folders above it"
        )
        #expect(detail(ENOENT, .unix(path: "/a")) == "unix:/a: No such file or directory")
        #expect(detail(EACCES, .ipv4(.loopback, port: 1)) == "127.0.0.1:1: Permission denied")
    }

    @Test func `a connection carries one request after another`() throws {
        let asker = try Asker([Self.answer + Self.answer])
        for _ in 1...2 { #expect(asker.ask(asker.exchange()) == answered) }
        let counts = asker.metrics.read()
        #expect(counts[.upstreamConnects] == 1 && counts[.upstreamReuses] == 1 && asker.counted(.retries) == 0)
    }

    struct Dead: CustomTestStringConvertible {
        let method: HTTPSemantics.Method
        var content = UpstreamRequest.Content.none
        let isRepeated: Bool

        var testDescription: String { "\(method) with content \(content)" }
    }

    @Test(arguments: [
        Dead(method: .get, isRepeated: true), Dead(method: .delete, isRepeated: true),
        Dead(method: .post, isRepeated: false),
        Dead(method: .put, content: .length, isRepeated: false),
    ])
    func `a repeatable request is sent once more if its idle connection closes`(
        row: Dead
    ) throws {
        let asker = try Asker([Self.answer + [.request(), .close], Self.answer])
        #expect(asker.ask(asker.exchange()) == answered)
        let exchange = asker.exchange(row.method, content: row.content)
        #expect(asker.ask(exchange) == (row.isRepeated ? answered : ["failed closed"]))
        #expect(asker.servers[0].requests.count == (row.isRepeated ? 3 : 2))
        #expect(asker.counted(.retries) == (row.isRepeated ? 1 : 0))
        // It says nothing of the server.
        #expect(asker.inUse[0])
    }

    @Test(arguments: [
        Dead(method: .get, isRepeated: true), Dead(method: .post, isRepeated: true),
        Dead(method: .post, content: .length, isRepeated: false),
    ])
    func `a request without content is repeated after a 408 that crossed it`(row: Dead) throws {
        let timedOut = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        let asker = try Asker([Self.answer + [.request(), .send(timedOut), .close], Self.answer])
        #expect(asker.ask(asker.exchange()) == answered)
        let events = asker.ask(asker.exchange(row.method, content: row.content))
        #expect(events == (row.isRepeated ? answered : ["head 408", "end"]))
        #expect(asker.servers[0].requests.count == (row.isRepeated ? 3 : 2))
    }

    @Test(arguments: [(HTTPSemantics.Method.get, true), (.delete, true), (.post, false)])
    func `an idempotent request goes to the next server if its new connection is closed`(
        method: HTTPSemantics.Method, isRepeated: Bool
    ) throws {
        let asker = try Asker([[.request(), .close]], [Self.answer])
        #expect(asker.ask(asker.exchange(method)) == (isRepeated ? answered : ["failed closed"]))
        #expect(asker.servers.map(\.requests.count) == [1, isRepeated ? 1 : 0])
    }

    @Test(arguments: [0, 1, 2]) func `a request is sent to other servers as often as permitted`(attempts: Int) throws {
        let closing: [[ScriptedServer.Step]] = [[.request(), .close]]
        let asker = try Asker(closing, closing, [Self.answer]) { $0.retry.attempts = attempts }
        #expect(asker.ask(asker.exchange()) == (attempts == 2 ? answered : ["failed closed"]))
        #expect(asker.servers.map(\.requests.count) == [1, attempts > 0 ? 1 : 0, attempts > 1 ? 1 : 0])
        #expect(asker.counted(.retries) == UInt64(attempts))
    }

    // MARK: Responses of no use

    private static func refusal(_ status: Int, _ fields: String = "") -> [ScriptedServer.Step] {
        [.request(), .send("HTTP/1.1 \(status) No\r\n\(fields)Content-Length: 2\r\n\r\nno")]
    }

    @Test(arguments: [
        (503, HTTPSemantics.Method.get, true), (502, .get, true), (504, .delete, true), (503, .post, false),
        (500, .get, false), (404, .get, false), (429, .get, true),
    ])
    func `a response that the settings name is not the answer if another server can be asked`(
        status: Int, method: HTTPSemantics.Method, isRepeated: Bool
    ) throws {
        let asker = try Asker([Self.refusal(status)], [Self.answer]) { $0.retry.statuses = [429, 502, 503, 504] }
        let events = asker.ask(asker.exchange(method))
        #expect(events == (isRepeated ? answered : ["head \(status)", "body no", "end"]))
        #expect(asker.counted(.retries) == (isRepeated ? 1 : 0))
    }

    @Test(arguments: [1, 2, 3])
    func `without another server, attempts or a budget, the response is the answer as it came`(servers: Int) throws {
        let refusing = [Self.refusal(503) + Self.refusal(503) + Self.refusal(503)]
        let asker = try Asker(refusing, refusing, refusing) {
            $0.servers = Array($0.servers.prefix(servers))
            if servers == 3 { $0.retry.attempts = 0 }
        }
        #expect(asker.ask(asker.exchange()) == ["head 503", "body no", "end"])
        #expect(asker.servers.map(\.requests.count).reduce(0, +) == (servers == 2 ? 2 : 1))
    }

    @Test func `a server that refuses again and again is ejected, for as long as it says`() throws {
        let asker = try Asker([Self.refusal(503, "Retry-After: 77\r\n")], [Self.answer + Self.answer]) {
            $0.maxFailures = 1
        }
        #expect(asker.ask(asker.exchange()) == answered)
        #expect(asker.inUse == [false, true])
        let until = try #require(asker.group.states(at: 0)[0].nextProbe)
        #expect((76_000_000_000...77_000_000_000).contains(until - asker.loop.now))
        #expect(asker.ask(asker.exchange()) == answered && asker.servers.map(\.requests.count) == [1, 2])
    }

    @Test(arguments: ["99999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "-1", "Thu, 01 Jan 1970 00:00:00 GMT"])
    func `a server may ask for any time, and is ejected for no longer than the bound`(time: String) throws {
        let asker = try Asker([Self.refusal(503, "Retry-After: \(time)\r\n")], [Self.answer]) { $0.maxFailures = 1 }
        #expect(asker.ask(asker.exchange()) == answered)
        #expect(asker.inUse == [false, true])
        let until = try #require(asker.group.states(at: 0)[0].nextProbe)
        #expect((1...PlaceHealth.longestEjection).contains(until - asker.loop.now))
    }

    @Test(arguments: [true, false])
    func `a server that is silent is asked once, and another one then`(isCause: Bool) throws {
        let asker = try Asker([[.request(), .pause]], [Self.answer]) {
            $0.firstByteTimeout = .milliseconds(100)
            if !isCause { $0.retry.causes = [.error] }
        }
        #expect(asker.ask(asker.exchange()) == (isCause ? answered : ["failed head-timeout"]))
    }

    @Test func `a malformed head is no answer if another server can be asked`() throws {
        let asker = try Asker([[.request(), .send("nonsense\r\n\r\n")]], [Self.answer])
        #expect(asker.ask(asker.exchange()) == answered)
    }

    @Test func `after an interim response no other server is asked`() throws {
        let asker = try Asker(
            [[.request(), .send("HTTP/1.1 103 Early Hints\r\n\r\n"), .close]], [Self.answer])
        #expect(asker.ask(asker.exchange()) == ["interim 103", "failed closed"])
    }

    // MARK: No server

    @Test func `if no server takes connections, clients are told when to come again`() throws {
        let asker = try Asker([], []) { $0.maxFailures = 1 }
        asker.servers.forEach { $0.close() }
        #expect(asker.ask(asker.exchange()) == ["failed no-server"])
        #expect(asker.retryAfter == 10 && asker.inUse == [false, false])
        // One early probe, of one server; for the others, nobody is asked.
        let failures = asker.counted(.failures(.connect))
        for _ in 0..<5 { #expect(asker.ask(asker.exchange()) == ["failed no-server"]) }
        #expect(asker.counted(.failures(.connect)) == failures + 1)
    }

    @Test func `a drained server gets no new request, and its idle connections are closed`() throws {
        let asker = try Asker([Self.answer + Self.answer], [Self.answer + Self.answer])
        for _ in 0..<2 { #expect(asker.ask(asker.exchange()) == answered) }
        let drained = asker.pool.settings.servers[0].location
        #expect(asker.group.drain(.server(drained), true, at: asker.loop.now))
        asker.pool.update()
        #expect(asker.pool.connections.map(\.idle) == [0, 1])
        #expect(asker.ask(asker.exchange()) == answered && asker.servers.map(\.requests.count) == [1, 2])
        #expect(asker.group.drain(.server(asker.pool.settings.servers[1].location), true, at: asker.loop.now))
        #expect(asker.ask(asker.exchange()) == ["failed no-server"])
    }

    @Test func `requests in flight are counted, and none is left, whatever ends them`() throws {
        let asker = try Asker(
            [Self.answer + [.request(), .pause], [.request(), .close], Self.refusal(503), [.request(), .pause]],
            [Self.answer, Self.answer, Self.answer, Self.answer, Self.answer]
        ) {
            $0.balance = .leastRequests
            $0.maxFailures = 100
        }
        var most = 0
        for _ in 0..<6 {
            let exchange = asker.exchange()
            exchange.start()
            most = max(most, asker.group.entries.map(\.place.requestsInFlight).max() ?? 0)
            asker.loop.schedule(after: 20_000_000) { asker.loop.stop() }
            asker.run()
            exchange.cancel()
        }
        #expect(most == 1)
        #expect(asker.group.entries.map(\.place.requestsInFlight) == [0, 0])
    }

    @Test func `the preferred server is asked first, while it is in use`() throws {
        let asker = try Asker([Self.answer], [Self.answer + Self.answer + Self.answer])
        let preferred = asker.group.entries[1].place
        func ask() -> Exchange {
            let exchange = Exchange(
                UpstreamRequest(method: .get, head: ByteSlice("GET / HTTP/1.1\r\n\r\n")), pool: asker.pool,
                handler: asker, preferring: preferred)
            #expect(asker.ask(exchange) == answered)
            return exchange
        }
        for _ in 0..<3 { #expect(ask().place === preferred) }
        #expect(asker.group.drain(.server(preferred.server.location), true, at: 0))
        #expect(ask().place !== preferred)
    }

    @Test(arguments: [HTTPSemantics.Method.get, .post])
    func `a server that accepts no connection is passed over`(method: HTTPSemantics.Method) throws {
        let asker = try Asker([], [Self.answer])
        asker.servers[0].close()
        #expect(asker.ask(asker.exchange(method)) == answered)
        #expect(asker.counted(.retries) == 0)
    }

    @Test func `an exchange fails if the only server accepts no connection`() throws {
        let asker = try Asker([])
        asker.servers.forEach { $0.close() }
        #expect(asker.ask(asker.exchange()) == ["failed connect"])
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", ["head 200", "body hel", "failed body"]),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            ["head 200", "body hello", "failed body"]
        ),
        ("HTTP/1.1 200 OK\r\n\r\nhello", ["head 200", "body hello", "end"]),
        ("HTTP/1.1 200", ["failed closed"]),
        ("nonsense\r\n\r\n", ["failed head"]),
    ])
    func `a response that breaks off is not reported as complete`(response: String, expected: [String]) throws {
        let asker = try Asker([[.request(), .send(response), .close]], [Self.answer]) { $0.retry.causes = [] }
        #expect(asker.ask(asker.exchange()) == expected)
        #expect(asker.servers[0].requests.count == 1)
    }

    @Test func `after a pause, the rest of the response is reported on request`() throws {
        let asker = try Asker([Self.answer])
        asker.intake = { _ in .takenAndFull }
        let exchange = asker.exchange()
        exchange.start()
        asker.run { $0 == "body ok" }
        #expect(asker.events == ["head 200", "body ok"])
        exchange.resume()
        #expect(asker.events == answered)
    }

    @Test func `refused bytes are offered again`() throws {
        let asker = try Asker([Self.answer])
        asker.intake = { $0 == "ok" ? .refused(after: 1) : .taken }
        let exchange = asker.exchange()
        exchange.start()
        asker.run { $0 == "body ok" }
        exchange.resume()
        #expect(asker.events == ["head 200", "body ok", "body k", "end"])
    }

    /// What is read may have to wait for memory in its buffer.
    @Test(arguments: [true, false]) func `a response is read in small pieces while memory is short`(_ isShort: Bool)
        throws
    {
        let body = String(repeating: "x", count: 40_000)
        let asker = try Asker([
            [.request(), .send("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")]
        ])
        asker.setMemoryShort(isShort)
        var longest = 0
        asker.intake = { piece in
            longest = max(longest, piece.utf8.count)
            return .taken
        }
        let events = asker.ask(asker.exchange())
        #expect(events.last == "end" && events.count > 2)
        #expect((longest <= 16 << 10) == isShort, "\(longest)")
    }

    @Test func `after cancellation nothing is reported, and the connection is closed`() throws {
        let asker = try Asker([[.request(), .pause, .send(Self.ok)]])
        let exchange = asker.exchange()
        exchange.start()
        asker.servers[0].onEvent = { connection in
            if connection.hasEnded { return asker.loop.stop() }
            exchange.cancel()
            connection.goOn()
        }
        asker.run()
        #expect(asker.events == [])
        #expect(asker.metrics.read().upstreamConnectionsOpen == 0)
    }

    @Test func `content that comes before the connection is sent after the head, chunked`() throws {
        let content = "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        let asker = try Asker([[.request(content: content.utf8.count), .send(Self.ok)]])
        let exchange = asker.exchange(.post, content: .chunked)
        exchange.start()
        for piece in ["abc", "de"] {
            let bytes = ByteSlice(piece)
            let takesMore = exchange.send(bytes.span)
            #expect(takesMore)
        }
        exchange.endContent()
        asker.run { $0 == "end" }
        #expect(asker.servers[0].requests == ["POST / HTTP/1.1\r\n\r\n" + content])
    }

    @Test func `before the connection, no more content is taken than is held`() throws {
        let asker = try Asker([[.request(content: 8 << 10), .send(Self.ok)]])
        let exchange = asker.exchange(.put, content: .length)
        exchange.start()
        let content = ByteSlice(String(repeating: "x", count: 8 << 10))
        let takesMore = exchange.send(content.span)
        #expect(!takesMore)
        exchange.endContent()
        asker.run { $0 == "end" }
        #expect(asker.events == ["takes content"] + answered)
    }

    @Test func `a 101 hands the connection over, if an upgrade was requested`() throws {
        let switching: [ScriptedServer.Step] = [
            .request(), .send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n\r\n"),
        ]
        let asker = try Asker([switching, switching])
        #expect(asker.ask(asker.exchange()) == ["failed head"])
        #expect(asker.ask(asker.exchange(asksForUpgrade: true)) == ["upgraded"])
        let tunnel = try #require(asker.tunnel)
        #expect(!tunnel.isClosed)
        tunnel.closeTunnel()
        #expect(tunnel.isClosed)
        #expect(asker.metrics.read().upstreamConnectionsOpen == 0)
    }
}
