import Bytes
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

/// A purge of URLs that have many keys each.
@Suite(.timeLimit(.minutes(1))) struct PurgedURLsTests {
    private static func server(on loop: EventLoop) -> ProxyServer {
        var settings = ProxySettings()
        var route = RouteSettings(upstream: "one")
        route.key.fields = [ByteSlice("x-tenant")]
        settings.routes = [route]
        let log = Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() }
        return ProxyServer(
            settings, upstreams: [.named("one")], storage: StorageSettings(), accessLog: AccessLogSettings(), on: loop,
            log: log)
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

    /// Runs `loop` until the purge that `begin` begins is done, which must not be at once.
    /// - Returns: how many responses it removed, and how many turns others had meanwhile.
    private static func run(_ loop: EventLoop, begin: @escaping (_ completion: @escaping (Int) -> Void) -> Void)
        -> (purged: Int, turns: Int)
    {
        var (purged, turns) = (-1, 0)
        func others() {
            turns += 1
            if purged < 0 { loop.schedule(after: 0, others) }
        }
        loop.atIterationEnd {
            others()
            begin { removed in
                purged = removed
                loop.stop()
            }
            #expect(purged < 0, "not all at once")
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
            let (purged, turns) = Self.run(loop) { server.purge(urls, below: [], completion: $0) }
            #expect(purged == 30 && store.numbers.responses == 30)
            // A turn for each part of the store, not for each URL: as many as there are, and a few.
            let parts = StorageSettings().shards
            #expect((parts / 2...parts + 10).contains(turns), "\(turns)")
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
                server.purgeAll(completion: completion)
                let isNoted = server.shared.variations.wasInvalidated(bytes.span, since: before)
                #expect(isNoted, "at once")
            }
            #expect(purged == 20 && store.numbers.responses == 0)
            #expect(turns >= StorageSettings().shards / 2, "\(turns)")
            loop.stop()
        }
    }

    @Test func `an empty purge ends at once`() throws {
        try onLoop { loop in
            var purged = -1
            Self.server(on: loop).purge([], below: []) { purged = $0 }
            #expect(purged == 0)
            loop.stop()
        }
    }
}
