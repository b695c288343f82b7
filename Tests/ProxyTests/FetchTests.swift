import Libevent
import LoopTesting
import Telemetry
import Testing

@testable import Proxy

@Suite(.timeLimit(.minutes(1))) struct FetchTests {
    @Test func `an origin that sends all the time is not overtaken, however short the time is`() throws {
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

    /// If all began with the same server, it would get the first requests of all workers.
    @Test(arguments: [0, 1, 3])
    func `each worker begins with another server`(worker index: Int) throws {
        let proxy = try TestProxy(worker: index, servers: 2)
        let client = try proxy.ask()
        proxy.run { proxy.origins.contains { $0.requestCount > 0 } }
        #expect(proxy.origins.map(\.requestCount) == (index % 2 == 0 ? [1, 0] : [0, 1]))
        proxy.origins[index % 2].answer("x")
        proxy.run { client.hasEnded }
    }
}
