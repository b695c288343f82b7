import Libevent
import LoopTesting
import Routing
import Telemetry
import Testing

@testable import Proxy

@Suite(.timeLimit(.minutes(10))) struct FetchTests {
    @Test func `an origin that keeps sending is not overtaken, however short the time is`() throws {
        let proxy = try TestProxy { $0.coalescing.overtakeAfter = .milliseconds(10) }
        let client = try proxy.ask()
        proxy.run { proxy.origin.requestCount == 1 }
        var rest = 30
        proxy.origin.begin("x", of: rest + 1)
        // Less often than that time, more often than the wheel turns.
        let sending = proxy.loop.schedule(every: 20 * millisecond) { [origin = proxy.origin] in
            origin.goOn("x")
            rest -= 1
        }
        proxy.run { rest == 0 && client.hasEnded }
        sending.cancel()
        #expect(proxy.counted(.coalescing(.overtaken)) == 0)
        #expect(client.answer == "200 " + String(repeating: "x", count: 31))
    }

    @Test func `a part that does not fit and is not stored teaches no variation`() throws {
        let proxy = try TestProxy { $0.caching.rangeMisses = .part }
        let first = try proxy.ask("GET /x?a=1\nRange: bytes=0-3")
        proxy.run { proxy.origin.requestCount == 1 }
        proxy.origin.answer(part: "0123", from: 0, "ETag: \"one\"")
        proxy.run { first.hasEnded }
        let second = try proxy.ask("GET /x?a=1\nRange: bytes=2-7")
        proxy.run { proxy.origin.requestCount == 2 }
        // Of another representation, so that it is not what the client wants, with or without the stored one.
        proxy.origin.answer(part: "4567", from: 4, "ETag: \"two\"\r\nNo-Vary-Search: params=(\"b\")")
        proxy.run { proxy.origin.requestCount == 3 }
        #expect(second.isWaiting && proxy.counted(.coalescing(.released)) == 1)
        let request = try #require(second.transaction?.request)
        #expect(!proxy.worker.context.hasLearnt(about: request) && request.variation == nil)
    }

    /// If all began with the same server, it would get the first requests of all workers.
    @Test(arguments: [0, 1, 3])
    func `each worker begins with a different server`(worker index: Int) throws {
        let proxy = try TestProxy(worker: index, servers: 2)
        let client = try proxy.ask()
        proxy.run { proxy.origins.contains { $0.requestCount > 0 } }
        #expect(proxy.origins.map(\.requestCount) == (index % 2 == 0 ? [1, 0] : [0, 1]))
        proxy.origins[index % 2].answer("x")
        proxy.run { client.hasEnded }
    }
}
