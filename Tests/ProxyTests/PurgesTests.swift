import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Logging
import LoopTesting
import RouteTesting
import Routing
import Storage
import Telemetry
import Testing
import Upstream

@testable import Proxy

/// Purges that need a walk of the store.
@Suite(.timeLimit(.minutes(10))) struct PurgesTests {
    /// - Parameter turn: how long a walk works until it rests; by default it never does.
    private static func server(on loop: EventLoop, turn: Duration = .seconds(3600)) -> ProxyServer {
        var settings = ProxySettings()
        var route = RouteSettings(upstream: "one")
        route.key.fields = [ByteSlice("x-tenant")]
        settings.routes = [route]
        let log = Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() }
        let server = ProxyServer(
            settings, upstreams: [.named("one")], storage: StorageSettings(), accessLog: AccessLogSettings(), on: loop,
            log: log)
        server.purges.turn = turn
        return server
    }

    private static func put(_ key: String, in shared: SharedState) {
        let bytes = ByteSlice(key)
        let key = CacheKey(hash: shared.keyHash.hash(bytes.span), bytes: bytes)
        let head = block("Cache-Control: max-age=60")
        let facts = ResponseFacts(
            status: .ok, fields: head.view, requestTime: arrival, responseTime: arrival, policy: CachingPolicy())
        let body = ByteSlice("x")
        let response = StoredResponse(packing: head.bytes.span, body: body.span, under: bytes.span, facts: facts)
        #expect(shared.store.store(response, under: key, requestTime: arrival, unless: { false }) == .stored)
    }

    private static func prefix(_ url: String) throws -> [ParsedURL] { try [#require(ParsedURL(url))] }

    private static func request(_ urls: [ParsedURL] = [], below prefixes: [ParsedURL] = []) -> PurgeRequest {
        var request = PurgeRequest()
        (request.urls, request.prefixes) = (urls, prefixes)
        return request
    }

    private static var everything: PurgeRequest {
        var request = PurgeRequest()
        request.isOfEverything = true
        return request
    }

    /// Runs `loop` until the purge that `begin` begins is done, which must not be at once.
    /// - Returns: how many responses it removed, and how many turns others had meanwhile.
    private static func run(
        _ loop: EventLoop, begin: @escaping (_ completion: @escaping (PurgeOutcome?) -> Void) -> Void
    )
        -> (purged: Int?, turns: Int)
    {
        var (purged, isOver, turns) = (Int?.none, false, 0)
        func others() {
            turns += 1
            if !isOver { loop.schedule(after: 0, others) }
        }
        loop.atIterationEnd {
            others()
            begin { removed in
                (purged, isOver) = (removed?.count, true)
                loop.stop()
            }
            #expect(!isOver, "not all at once")
        }
        loop.run()
        return (purged, turns)
    }

    @Test func `one walk of the store purges all URLs, and clients are served in between`() throws {
        try onLoop { loop in
            let server = Self.server(on: loop)
            let store = server.shared.store
            // Their tenants' keys are in different shards.
            for page in 0..<20 {
                for tenant in ["\0\u{2}", "\0\u{1}a", "\0\u{1}b"] {
                    Self.put("http a.example /\(page)\(tenant)", in: server.shared)
                }
            }
            let urls = try (0..<10).map { try #require(ParsedURL("http://a.example/\($0)")) }
            let (purged, turns) = Self.run(loop) { server.purge(Self.request(urls), completion: $0) }
            #expect(purged == 30 && store.numbers.responses == 30)
            // A turn for each part of the store, not for each URL: as many as there are, and a few.
            let parts = StorageSettings().shards
            #expect((parts / 2...parts + 10).contains(turns), "\(turns)")
            loop.stop()
        }
    }

    @Test func `sixty purges at once take as many turns as one, and each gets its own count`() throws {
        try onLoop { loop in
            let server = Self.server(on: loop)
            for page in 0..<240 { Self.put("http a.example /\(page % 60)/\(page)", in: server.shared) }
            var counts: [Int: Int] = [:]
            let prefixes = try (0..<58).map { try Self.prefix("http://a.example/\($0)/") }
            let whole = try Self.prefix("http://a.example/")
            let (purged, turns) = Self.run(loop) { completion in
                for (number, prefix) in prefixes.enumerated() {
                    server.purge(Self.request(below: prefix)) { counts[number] = $0?.count }
                }
                server.purge(Self.request(below: whole)) { counts[58] = $0?.count }
                server.purge(Self.everything, completion: completion)
            }
            #expect((0..<58).allSatisfy { counts[$0] == 4 })
            #expect(counts[58] == 240 && purged == 240, "each counts a response that several purges have")
            let parts = StorageSettings().shards
            #expect((parts / 2...parts + 10).contains(turns), "\(turns)")
            loop.stop()
        }
    }

    @Test func `a purge that begins during another takes one round more at most`() throws {
        try onLoop { loop in
            let server = Self.server(on: loop)
            for page in 0..<240 { Self.put("http a.example /\(page % 2)/\(page)", in: server.shared) }
            var first: Int?
            let (one, other) = try (Self.prefix("http://a.example/0/"), Self.prefix("http://a.example/1/"))
            let (second, turns) = Self.run(loop) { completion in
                server.purge(Self.request(below: one)) { first = $0?.count }
                var wait = StorageSettings().shards / 2
                func later() {
                    wait -= 1
                    if wait > 0 {
                        loop.schedule(after: 0, later)
                    } else {
                        server.purge(Self.request(below: other), completion: completion)
                    }
                }
                later()
            }
            #expect(first == 120 && second == 120)
            #expect(turns < StorageSettings().shards * 7 / 4, "\(turns)")
            loop.stop()
        }
    }

    @Test func `others are served while everything is purged, and paths are noted as invalidated at once`() throws {
        try onLoop { loop in
            let server = Self.server(on: loop)
            let store = server.shared.store
            for page in 0..<20 { Self.put("http a.example /\(page)", in: server.shared) }
            let bytes = ByteSlice("http a.example /x")
            let before = server.shared.variations.invalidations
            let (purged, turns) = Self.run(loop) { completion in
                server.purge(Self.everything, completion: completion)
                let isNoted = server.shared.variations.wasInvalidated(bytes.span, since: before)
                #expect(isNoted, "at once")
            }
            #expect(purged == 20 && store.numbers.responses == 0)
            #expect(turns >= StorageSettings().shards / 2, "\(turns)")
            loop.stop()
        }
    }

    @Test func `a walk rests when it has worked for its turn`() throws {
        try onLoop { loop in
            let server = Self.server(on: loop, turn: .zero)
            let (purged, turns) = Self.run(loop) { server.purge(Self.everything, completion: $0) }
            #expect(purged == 0)
            // The loop had many turns while the walk rested after each step.
            #expect(turns > 4 * StorageSettings().shards, "\(turns)")
            loop.stop()
        }
    }

    @Test func `an empty purge ends at once`() throws {
        try onLoop { loop in
            var purged: Int?
            Self.server(on: loop).purge(PurgeRequest()) { purged = $0?.count }
            #expect(purged == 0)
            loop.stop()
        }
    }

    @Test func `a purge that the program's end cuts off is told so, and later ones go on`() throws {
        try onLoop { loop in
            let server = Self.server(on: loop)
            for page in 0..<20 { Self.put("http a.example /\(page)", in: server.shared) }
            var ends: [Int?] = []
            server.purge(Self.everything) { ends.append($0?.count) }
            server.purge(Self.everything) { ends.append($0?.count) }
            server.cancelPurges()
            let wereTold = ends == [nil, nil]
            #expect(wereTold && server.shared.store.numbers.responses == 20)
            let (purged, _) = Self.run(loop) { server.purge(Self.everything, completion: $0) }
            #expect(purged == 20 && ends.count == 2)
            loop.stop()
        }
    }

    /// Another part would bring the purged bytes back, and a 304 or a failure would serve them.
    @Test func `a fetch that begins during the walk from a response that is purged is not shared after it`() throws {
        let proxy = try TestProxy { $0.caching.rangeMisses = .part }
        let tagged = "Cache-Control: max-age=60\r\nETag: \"a\""
        let client = try proxy.ask("GET /x\nRange: bytes=0-3")
        let key = try #require(client.transaction?.request.key)
        proxy.run { proxy.origin.requestCount == 1 }
        proxy.origin.answer(part: "0123", from: 0, tagged)
        proxy.run { client.hasEnded }
        let shared = proxy.worker.context.shared
        #expect(shared.store.resource(key)?.partialResponses.count == 1)
        let purges = Purges(shared, on: proxy.loop)
        var purged: Int?
        purges.begin(.everything) { [unowned proxy] in
            purged = $0
            proxy.loop.stop()
        }
        let next = try proxy.ask("GET /x\nRange: bytes=4-7")
        let fetches = shared.origins.flatMap(\.fetches.operations).compactMap { $0 as? FetchOperation }
        let wereInvalidated = fetches.map(\.wasInvalidated)
        #expect(wereInvalidated == [false], "its request is sent after the purge began")
        proxy.run { purged != nil }
        #expect(purged == 1 && fetches.allSatisfy(\.wasInvalidated))
        proxy.run { proxy.origin.requestCount == 2 }
        proxy.origin.answer(part: "4567", from: 4, tagged)
        proxy.run { next.hasEnded }
        #expect(next.answer.hasSuffix(" 4567"))
        #expect(shared.store.resource(key)?.partialResponses.isEmpty ?? true)
    }
}
