import HTTPSemantics
import Synchronization
import Testing

@testable import Telemetry

@Suite struct LoopMetricsTests {
    @Test func `every counter has its own slot`() {
        #expect(Counter.allCases.map(\.slot) == Array(0..<Counter.allCases.count))
        #expect(Counter.allCases.count <= CounterCells<Counter>.capacity)
        #expect(UpstreamCounter.allCases.map(\.slot) == Array(0..<UpstreamCounter.allCases.count))
        #expect(UpstreamCounter.allCases.count <= CounterCells<UpstreamCounter>.capacity)
    }

    @Test func `public names are distinct, and small words joined by hyphens`() {
        func check<Name: PublicName>(_: Name.Type) {
            let names = Name.allCases.map { "\($0.name)" }
            #expect(Set(names).count == names.count)
            for name in names {
                #expect(
                    name.split(separator: "-", omittingEmptySubsequences: false).allSatisfy { word in
                        !word.isEmpty
                            && word.utf8.allSatisfy { ($0 >= 0x61 && $0 <= 0x7A) || ($0 >= 0x30 && $0 <= 0x39) }
                    }, "\(name)")
            }
        }
        check(StatusClass.self)
        check(Verdict.self)
        check(Role.self)
        check(CoalescingEvent.self)
        check(UpstreamFailure.self)
        check(StoreOutcome.self)
        check(LatencyClass.self)
        check(HandshakeFailure.self)
    }

    @Test func `a method outside the list is counted as another one`() {
        for method in Method.allCases {
            let slot = Counter.requests(Method.counted.contains(method) ? method : .other).slot
            #expect(Counter.requests(method).slot == slot)
        }
        #expect(
            Method.counted.map(\.label) == ["get", "head", "options", "post", "put", "patch", "delete", "other"])
    }

    @Test(
        arguments: [
            (100, .informational), (199, .informational), (200, .successful), (304, .redirection),
            (404, .clientError), (499, .clientError), (500, .serverError), (599, .serverError),
            (0, .serverError), (99, .serverError), (600, .serverError),
        ] as [(UInt16, StatusClass)])
    func `a status code has the class of its first digit`(status: UInt16, expected: StatusClass) {
        #expect(StatusClass(status: status) == expected)
    }

    @Test func `counters of several loops add up`() {
        let loops = [LoopMetrics(), LoopMetrics()]
        loops[0].add(.requests(.get))
        loops[0].add(.clientBytesOut, 1000)
        loops[1].add(.requests(.get), 2)
        for loop in loops { loop.change(toUpstreams: ["one", "two"]) }
        loops[0].upstream("one").add(.verdicts(.hit))
        loops[1].upstream("one").add(.verdicts(.hit))
        loops[1].upstream("two").add(.fetches)
        loops[1].unrouted.add(.verdicts(.refused))
        let sum = CounterValues(sumOf: loops)
        #expect(sum[.requests(.get)] == 3)
        #expect(sum[.requests(.head)] == 0)
        #expect(sum[.clientBytesOut] == 1000)
        #expect(sum[upstream: "one"][.verdicts(.hit)] == 2 && sum[upstream: "one"][.fetches] == 0)
        #expect(sum[upstream: "two"][.verdicts(.hit)] == 0 && sum[upstream: "two"][.fetches] == 1)
        #expect(sum.unrouted[.verdicts(.refused)] == 1)
        #expect(sum[upstream: "three"][.fetches] == 0)
    }

    @Test func `an upstream that stays keeps its counts, and one that goes is forgotten`() {
        let loop = LoopMetrics()
        loop.change(toUpstreams: ["stays", "goes"])
        let (stays, goes) = (loop.upstream("stays"), loop.upstream("goes"))
        stays.add(.fetches)
        goes.add(.fetches)
        loop.change(toUpstreams: ["stays", "comes"])
        // Requests from before.
        stays.add(.fetches)
        goes.add(.fetches)
        loop.upstream("goes").add(.fetches)
        loop.upstream("comes").add(.fetches)
        var values = loop.read()
        #expect(["stays", "goes", "comes"].map { values[upstream: $0][.fetches] } == [2, 0, 1])
        loop.change(toUpstreams: ["goes"])
        values = loop.read()
        #expect(values[upstream: "goes"][.fetches] == 0)
    }

    @Test func `open connections are the opened ones less the closed ones, never below zero`() {
        let loop = LoopMetrics()
        loop.add(.clientConnectionsOpened, 5)
        loop.add(.clientConnectionsClosed, 2)
        #expect(loop.read().clientConnectionsOpen == 3)
        loop.add(.clientConnectionsClosed, 4)
        #expect(loop.read().clientConnectionsOpen == 0)
    }

    @Test func `a simultaneous reader sees counters that only grow, and all counts at the end`() async {
        let loop = LoopMetrics()
        let rounds: UInt64 = 20_000
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for _ in 0..<rounds {
                    loop.add(.clientConnectionsOpened)
                    loop.add(.clientConnectionsClosed)
                }
            }
            group.addTask {
                var last: UInt64 = 0
                while last < rounds {
                    let now = loop.read()[.clientConnectionsClosed]
                    #expect(now >= last)
                    last = now
                    await Task.yield()
                }
            }
        }
        #expect(loop.read()[.clientConnectionsOpened] == rounds)
    }
}
