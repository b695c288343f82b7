import Bytes
import Libevent
import LoopTesting
import Routing
import Testing

@testable import Proxy

/// Which connections make room for others, and how often they are looked for.
@Suite(.timeLimit(.minutes(10))) final class IdleConnectionsTests {
    private let proxy: TestProxy
    private var listener: Listener?
    /// In the order in which they came.
    private var connections: [ClientTransport] = []
    private var clients: [TestSocket] = []
    private var idle = IdleConnections()

    private static let timeout = 60 * second

    init() throws {
        proxy = try TestProxy { $0.clients.idleTimeout = .seconds(60) }
        listener = try Listener(.ipv4(.loopback, port: 0), on: proxy.loop) { [unowned self] descriptor, peer in
            let connection = HTTP1Connection(
                adopting: descriptor, peer: peer, clients: proxy.worker.clients)
            connections.append(connection)
            connection.begin(with: nil)
        }
        // What the connections do by themselves is noticed.
        proxy.loop.schedule(every: millisecond) { [unowned loop = proxy.loop] in loop.stop() }
    }

    deinit {
        for connection in connections { connection.end() }
        for client in clients { client.close() }
        listener?.close()
    }

    private func connect() throws {
        let listener = try #require(listener)
        clients.append(try TestSocket(connectingTo: listener.localAddress, on: proxy.loop))
    }

    /// So many, each idle since another moment.
    private func connect(times count: Int) throws {
        for _ in 0..<count {
            try connect()
            proxy.run { connections.count == clients.count }
        }
    }

    /// When it became idle, in nanoseconds of the loop's clock.
    private func idleSince(_ index: Int) throws -> Int64 { try #require(connections[index].idleUntil) - Self.timeout }

    private func find(at now: Int64) -> Bool {
        let known = Dictionary(uniqueKeysWithValues: connections.map { (ObjectIdentifier($0), $0) })
        return idle.find(among: known, at: now, timeout: Self.timeout)
    }

    /// Those that were found, by when they came.
    private func found() -> [Int] {
        var found: [Int] = []
        while let next = idle.next() {
            guard let index = connections.firstIndex(where: { ObjectIdentifier($0) == next.connection }) else { break }
            #expect(connections[index].idleUntil == next.until)
            found.append(index)
        }
        return found
    }

    @Test func `the connection idle for longest comes first`() throws {
        try connect(times: 3)
        let isFound = try find(at: idleSince(2) + second)
        #expect(isFound && found() == [0, 1, 2])
    }

    @Test func `a connection accepted less than a second ago is not idle`() throws {
        try connect(times: 3)
        let isFound = try find(at: idleSince(1) + second - 1)
        #expect(isFound && found() == [0])
    }

    @Test func `a connection whose request has begun is not idle`() throws {
        try connect(times: 3)
        let (now, beginning) = (try idleSince(2) + second, ByteSlice("GET /x HT"))
        _ = clients[1].write(beginning.span)
        proxy.run { connections[1].idleUntil == nil }
        let isFound = find(at: now)
        #expect(isFound && found() == [0, 2])
    }

    @Test func `after a search without result, the next search waits`() throws {
        try connect(times: 1)
        let (now, pause) = (try idleSince(0) + second - 1, 100 * millisecond)
        let (inVain, tooSoon) = (find(at: now), find(at: now + pause - 1))
        #expect(!inVain && !tooSoon && found().isEmpty)
        let isFound = find(at: now + pause)
        #expect(isFound && found() == [0])
    }

    @Test func `of many idle connections, only those idle for longest are listed`() throws {
        try connect(times: 20)
        for _ in 0..<280 { try connect() }
        proxy.run { connections.count == clients.count }
        let isFound = try find(at: idleSince(299) + second)
        let found = found()
        #expect(isFound && found.count == 256 && Array(found.prefix(20)) == Array(0..<20))
        let latest = try idleSince(found[255])
        #expect(try Set(0..<300).subtracting(found).allSatisfy { try idleSince($0) >= latest })
    }
}
